// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// Judges the answers of a cache by the text of RFC 9111, from the list of all exchanges and nothing else.
///
/// What an answer was made from is read from the marks that it bears; what of that the answer may be made from is decided here. Where
/// the RFC leaves a choice, any is right.
struct AdmissionModel {
    let setting: AdmissionSetting
    let log: AdmissionLog

    func violations() -> [AdmissionViolation] {
        log.calls.flatMap { AdmissionCheck($0, self).violations() }
    }

    func exchange(_ number: Int) -> AdmissionExchange? {
        log.exchanges.indices.contains(number - 1) ? log.exchanges[number - 1] : nil
    }

    /// Whether a response to one user may be stored and then answer another.
    ///
    /// - Parameter control: the Cache-Control that the stored response has with the fields of `exchange`.
    func permits(_ exchange: AdmissionExchange, for user: AdmissionUser, _ control: AdmissionDirectives) -> Bool {
        switch setting.mode {
        case .private:
            // Each principal is a cache of its own, but that the guest's responses may answer who shows no more than a cookie.
            // A credential that a step would add to what is sent is not there when the guest's response answers.
            return exchange.user == user
                || exchange.user == .guest
                    && (setting.identity == .preparedField
                        || setting.identity == .cookie && !control.has("private"))
        case .shared:
            if control.has("private") { return false }
            if exchange.user == .guest { return true }
            let isReleased = control.has("public") || control.seconds("s-maxage") != nil
            // RFC 9111 §3.5 speaks of any later request, the same user's included.
            if setting.identity == .authorization { return isReleased || control.has("must-revalidate") }
            return isReleased || exchange.user == user
        }
    }

    /// The Cache-Control values that the stored response may have had with the fields of an exchange.
    ///
    /// A response that brought none left the one before, which is known where it still stands in the answer.
    func controls(at exchange: AdmissionExchange, shownBy shown: AdmissionExchange?) -> [AdmissionDirectives] {
        if let text = exchange.answer?.fields["Cache-Control"] { return [AdmissionDirectives(text)] }
        if let shown, shown.sentAt < exchange.sentAt {
            return [AdmissionDirectives(shown.answer?.fields["Cache-Control"])]
        }
        let earlier = log.exchanges.filter { $0.number < exchange.number }.compactMap {
            $0.answer?.fields["Cache-Control"]
        }
        return [AdmissionDirectives(nil)] + earlier.map { AdmissionDirectives($0) }
    }

    /// Whether two requests are the same in the fields that a Vary nominates.
    func matches(_ call: PlannedCall, _ exchange: AdmissionExchange, vary: String?) -> Bool {
        guard let vary else { return true }
        return vary.split(separator: ",").allSatisfy { member in
            let name = String(member.drop { $0 == " " })
            return name != "*" && call.selecting[name] == exchange.call.selecting[name]
        }
    }
}
