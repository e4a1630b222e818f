// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// One field line of a case: its value may be text, or a date so many seconds from now.
struct CaseField: Sendable {
    let name: String
    let value: FieldValue
    /// Whether the client must receive the line as it was sent.
    let mustArrive: Bool

    /// Reads `[[name, value], [name, value, false], …]`.
    static func list(_ json: JSONValue?) -> [CaseField] {
        (json?.elements ?? []).compactMap { element in
            guard let parts = element.elements, let name = parts.first?.text, parts.count > 1,
                let value = FieldValue(parts[1])
            else { return nil }
            return CaseField(name: name, value: value, mustArrive: !(parts.count > 2 && parts[2].isFalse))
        }
    }
}

/// The value of a field in a case.
enum FieldValue: Sendable, Hashable {
    case text(String)
    /// In a date field, so many seconds from now; the number itself in any other.
    case number(Int)

    init?(_ json: JSONValue) {
        if let text = json.text {
            self = .text(text)
        } else if let number = json.number {
            self = .number(number)
        } else {
            return nil
        }
    }

    /// The value as it is sent.
    ///
    /// - Parameters:
    ///   - name: the field's name.
    ///   - now: what seconds count from.
    ///   - inOldForm: whether a date is spelled as RFC 850 had it.
    func spelled(for name: String, now: Timestamp, inOldForm: Bool = false) -> String {
        switch self {
        case .text(let text): return text
        case .number(let seconds):
            guard FieldValue.dateFields.contains(name.lowercased()) else { return String(seconds) }
            let date = HTTPDate(now.advanced(by: .seconds(seconds))).description
            return inOldForm ? FieldValue.oldForm(of: date) : date
        }
    }

    private static let dateFields: Set<String> = [
        "date", "expires", "last-modified", "if-modified-since", "if-unmodified-since",
    ]

    /// `Sun, 06 Nov 1994 08:49:37 GMT` as `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func oldForm(of date: String) -> String {
        let parts = date.split(separator: " ")
        guard parts.count == 6 else { return date }
        let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
        let weekday = weekdays.first { $0.hasPrefix(parts[0].prefix(3)) } ?? String(parts[0])
        return "\(weekday), \(parts[1])-\(parts[2])-\(parts[3].suffix(2)) \(parts[4]) \(parts[5])"
    }
}

/// What is expected of one field: that it is there or not, its value, or how it compares.
enum FieldExpectation: Sendable {
    case named(String)
    case value(String, FieldValue)
    case sameAs(String, String)
    case greater(String, Int)

    /// Reads names, `[name, value]`, `[name, "=", other name]` and `[name, ">", number]`.
    static func list(_ json: JSONValue?) -> [FieldExpectation] {
        (json?.elements ?? []).compactMap { element in
            if let name = element.text { return .named(name) }
            guard let parts = element.elements, let name = parts.first?.text else { return nil }
            if parts.count > 2 {
                if parts[1].text == "=", let other = parts[2].text { return .sameAs(name, other) }
                if parts[1].text == ">", let number = parts[2].number { return .greater(name, number) }
            }
            guard parts.count > 1, let value = FieldValue(parts[1]) else { return .named(name) }
            return .value(name, value)
        }
    }
}
