// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// The check of one answer.
struct AdmissionCheck {
    let model: AdmissionModel
    let call: AdmissionCall
    let evidence: AdmissionEvidence
    /// The exchanges of this very call that ended before it was answered.
    let own: [AdmissionExchange]
    /// The exchanges of other calls that the answer was made from.
    let foreign: [AdmissionExchange]
    /// The exchange that the latest fields are of: each response brings an X-Stamp.
    let newest: AdmissionExchange?

    private var found: [AdmissionViolation] = []

    init(_ call: AdmissionCall, _ model: AdmissionModel) {
        self.model = model
        self.call = call
        let evidence = AdmissionEvidence(call)
        self.evidence = evidence
        let end = call.endedAt
        own = model.log.exchanges.filter { exchange in
            exchange.call.number == call.plan.number
                && (evidence.all.contains(exchange.number) || end.map { (exchange.endedAt ?? $0) < $0 } ?? true)
        }
        foreign = evidence.all.sorted().compactMap { model.exchange($0) }.filter { $0.call.number != call.plan.number }
        newest = evidence.exchange(of: "X-Stamp").flatMap { model.exchange($0) }
    }

    func violations() -> [AdmissionViolation] {
        var check = self
        check.run()
        return check.found
    }

    // MARK: What kind of answer it is

    /// Whether the origin confirmed the answer to this call: by a response to it, or by one that it shared and that came while it waited.
    var isConfirmed: Bool {
        if call.source == "fresh" || call.source == "stale" { return false }
        return own.contains { $0.answer.map { $0.status < 500 } ?? false } || isShared
    }

    /// Whether the answer came while the call waited, from an exchange of another one.
    var isShared: Bool {
        guard call.source != "fresh", call.source != "stale" else { return false }
        if foreign.contains(where: { $0.endedAt.map { $0 > call.startedAt } ?? false }) { return true }
        return call.source == "collapsed" && awaited != nil
    }

    /// The exchange of another call that this one may have waited for, although the answer bears no mark of it.
    private var awaited: AdmissionExchange? {
        model.log.exchanges.last { exchange in
            guard let ended = exchange.endedAt, let end = call.endedAt, let answer = exchange.answer else {
                return false
            }
            return ended > call.startedAt && ended < end && answer.status < 500 && exchange.user == call.plan.user
                && AdmissionGenerator.paths[exchange.path] == AdmissionGenerator.paths[call.plan.path]
        }
    }

    var isHit: Bool { !foreign.isEmpty && own.allSatisfy { $0.answer == nil } && !isShared }
    var isRevalidated: Bool { !foreign.isEmpty && own.contains { $0.answer?.status == 304 } }
    var isJoined: Bool { evidence.bodies.count > 1 }

    /// Whether an origin's failure was told to all who waited for it, which is no reuse of something stored.
    private var isFailureToldToAll: Bool {
        guard isShared, let newest, let status = newest.answer?.status else { return false }
        // Who waits with a guest is a guest, until a step adds something to what is sent.
        let isOfWaiter =
            newest.user == call.plan.user || model.setting.identity == .preparedField && newest.user == .guest
        return [429, 500, 502, 503, 504].contains(status) && isOfWaiter
    }

    // MARK: The rules

    private mutating func report(_ kind: AdmissionViolation.Kind, _ source: AdmissionViolation.Source, _ text: String) {
        let hidesCredential = [.preparedField, .refreshedField].contains(model.setting.identity)
        let fault = AdmissionViolation.Fault(kind: kind, source: source, hidesCredential: hidesCredential)
        guard !found.contains(where: { $0.fault == fault }) else { return }
        found.append(AdmissionViolation(fault: fault, call: call.plan.number, text: text))
    }

    private mutating func report(_ kind: AdmissionViolation.Kind, by exchange: AdmissionExchange?, _ text: String) {
        report(kind, exchange.map { AdmissionViolation.Source($0) } ?? .answer, text)
    }

    private mutating func run() {
        guard call.endedAt != nil else { return report(.stuck, .answer, "it never ended") }
        if call.plan.forbidsSending, let sent = model.log.exchanges.first(where: { $0.call.number == call.plan.number })
        {
            // What revalidates in the background waits for nobody, but the caller asked that nothing be sent.
            report(.sentAlthoughOnlyIfCached, by: sent, "exchange \(sent.number) was sent")
        }
        guard call.error == nil else { return }
        checkCondition()
        checkContent()
        checkDigests()
        guard !foreign.isEmpty else { return }
        checkKey()
        guard !isFailureToldToAll else { return }
        checkUsers()
        checkVary()
        checkSelection()
        checkOrder()
        checkAge()
        checkInvalidation()
        checkDemands()
    }

    /// RFC 9111 §2, §4: the key is at least method and target URI; a request with content is another one.
    private mutating func checkKey() {
        for exchange in foreign {
            let canonical = AdmissionGenerator.paths[call.plan.path]
            let differsInQuery =
                canonical == "/q" && AdmissionGenerator.paths[exchange.path] == canonical
                && (call.status != 200 || call.fields.contains("No-Vary-Search"))
            if exchange.path != call.plan.path, exchange.path != canonical, !differsInQuery {
                report(.wrongKey, .otherPath, "exchange \(exchange.number) asked for \(exchange.path)")
            }
            if call.plan.isUnsafe {
                report(.wrongKey, .unsafe, "an answer to \(call.plan.method) from exchange \(exchange.number)")
            }
            if exchange.hasContent != (call.plan.content != nil) || exchange.call.content != call.plan.content {
                report(
                    .wrongKey,
                    .content,
                    "exchange \(exchange.number) sent the content \(exchange.call.content ?? "none")"
                )
            }
            let isBody = evidence.bodies.contains(exchange.number)
            let method = call.plan.isQuery ? "POST" : "GET"
            if exchange.call.isUnsafe || isBody && exchange.call.method != method {
                report(.wrongKey, by: exchange, "exchange \(exchange.number) was \(exchange.call.method)")
            }
        }
    }

    /// RFC 9111 §3, §3.5, §5.2.1.5, §5.2.2: whose responses may be stored, and answer whom.
    private mutating func checkUsers() {
        let shown = evidence.exchange(of: "Cache-Control").flatMap { model.exchange($0) }
        for exchange in foreign {
            let control = AdmissionDirectives(exchange.answer?.fields["Cache-Control"])
            if control.has("no-store") || exchange.call.forbidsStoring {
                report(.noStoreReused, by: exchange, "exchange \(exchange.number) forbids storing")
            }
            // For whom a private cache keeps it says what is stored now; a shared one must never have had what is private.
            let controls =
                model.setting.mode == .private
                ? [AdmissionDirectives(call.fields["Cache-Control"])]
                : model.controls(at: exchange, shownBy: shown)
            if !controls.contains(where: { model.permits(exchange, for: call.plan.user, $0) }) {
                let isBody = evidence.bodies.contains(exchange.number)
                report(
                    isBody ? .leakedBody : .leakedField,
                    by: exchange,
                    "exchange \(exchange.number) was \(exchange.user.rawValue)'s, the call is \(call.plan.user.rawValue)'s"
                )
            }
            guard evidence.exchange(of: "Set-Cookie") == exchange.number else { continue }
            // What the stored response says is for all; that a user's 304 is, it would have to say itself.
            if model.setting.mode == .shared, exchange.answer?.status == 304, exchange.user != .guest,
                exchange.user != call.plan.user, !control.has("public"), control.seconds("s-maxage") == nil
            {
                report(.leakedField, by: exchange, "the Set-Cookie of exchange \(exchange.number) is one user's")
            }
            if model.setting.mode == .shared, control.names("set-cookie", in: "private") {
                report(.leakedField, by: exchange, "the Set-Cookie of exchange \(exchange.number) is private")
            }
            if control.names("set-cookie", in: "no-cache"), !isConfirmed {
                report(.leakedField, by: exchange, "the Set-Cookie of exchange \(exchange.number) is no-cache")
            }
        }
    }

    /// RFC 9111 §4.1, with the Vary that the stored response has now.
    ///
    /// The original request is the one that the content answered; or the one that brought the newest fields, since the origin then said of
    /// its very answer that it is that content.
    private mutating func checkVary() {
        if own.contains(where: { [200, 206, 304].contains($0.answer?.status ?? 0) }), isConfirmed { return }
        guard let vary = newest?.answer?.fields["Vary"] ?? call.fields["Vary"] else { return }
        let bodies = foreign.filter { evidence.bodies.contains($0.number) }
        if vary.contains("*") { return report(.unmatchedVary, by: newest, "Vary: *") }
        if !bodies.isEmpty, bodies.allSatisfy({ model.matches(call.plan, $0, vary: vary) }) { return }
        if let newest, model.matches(call.plan, newest, vary: vary) { return }
        // An answer without content does not show which stored response it describes; any that would fit may be the one.
        let canDescribe = model.log.exchanges.contains { exchange in
            [200, 206, 304].contains(exchange.answer?.status ?? 0) && ["GET", "HEAD"].contains(exchange.call.method)
                && newest.map { exchange.sentAt < $0.sentAt } ?? (exchange.sentAt < call.startedAt)
                && model.matches(call.plan, exchange, vary: vary)
        }
        if bodies.isEmpty, canDescribe { return }
        report(.unmatchedVary, by: newest, "Vary: \(vary) of exchange \(newest?.number ?? 0)")
    }

    /// RFC 9111 §4.3.4: a 304 with a validator updates only what has the same; and RFC 9110 §15.4.5: one that the origin gave to a user's
    /// condition speaks of that user's representation.
    private mutating func checkSelection() {
        checkRepresentation()
        for body in evidence.bodies.compactMap({ model.exchange($0) }) {
            guard let stored = body.answer, let tag = stored.fields["ETag"], let shown = call.fields["ETag"] else {
                continue
            }
            guard AdmissionOrigin.opaque(tag) != AdmissionOrigin.opaque(shown) else { continue }
            // The same Last-Modified, if strong, selects it as well.
            if let date = stored.fields["Last-Modified"], date == newest?.answer?.fields["Last-Modified"] { continue }
            report(
                .wrongSelection,
                by: newest,
                "the content of exchange \(body.number) is \(tag), and the answer says \(shown)"
            )
        }
    }

    /// Whether the content is of the representation of which the origin said that it has not changed: to this call, or with the newest fields.
    private mutating func checkRepresentation() {
        let confirmations = ([newest].compactMap { $0 } + own).filter { $0.answer?.status == 304 }
        for confirmation in confirmations {
            guard let said = confirmation.answer?.representation else { continue }
            for body in evidence.bodies.compactMap({ model.exchange($0) }) {
                guard let stored = body.answer?.representation, stored.version > 0, stored != said else { continue }
                // By a date alone two versions of one resource may be taken for one, and by a weak tag two codings.
                let isNamed =
                    confirmation.sentFields.contains("If-None-Match")
                    && body.answer?.fields["ETag"]?.hasPrefix("\"") ?? false
                if stored.path == said.path, stored.version == said.version || !isNamed { continue }
                report(
                    .wrongSelection,
                    by: confirmation,
                    "the content of exchange \(body.number) is \(stored), and exchange \(confirmation.number) spoke of \(said)"
                )
            }
        }
    }

    /// RFC 9111 §4: the most recent; §3.4 and §4.3.4: newer fields replace older ones.
    private mutating func checkOrder() {
        guard let newest else { return }
        if let later = foreign.first(where: { $0.number != newest.number && $0.sentAt > newest.sentAt }) {
            return report(
                .olderOverNewer,
                by: newest,
                "the fields are of exchange \(newest.number), which was sent before exchange \(later.number)"
            )
        }
        // Who waits with others is told what was asked for before, and not what is older than what they had been given already.
        guard !isConfirmed || isShared, own.isEmpty, !evidence.bodies.isEmpty else { return }
        let used = evidence.all
        for later in model.log.exchanges where later.sentAt > newest.sentAt && isSurelyStored(later) {
            let mayHaveGone = model.log.exchanges.contains { other in
                guard !used.contains(other.number), other.number != later.number, let ended = other.endedAt else {
                    return false
                }
                return ended > later.sentAt && other.sentAt < call.startedAt
                    && AdmissionGenerator.paths[other.path] == AdmissionGenerator.paths[later.path]
            }
            // Each user's cache is one of its own: of the same second, what is the user's goes before what is all's.
            let isReleased = [later.answer?.fields["Cache-Control"], call.fields["Cache-Control"]].map { text in
                let control = AdmissionDirectives(text)
                return control.has("public") || control.seconds("s-maxage") != nil
            }
            let isOfOther =
                (later.user != newest.user || isReleased[0] != isReleased[1])
                && later.sentAt.time.secondsSinceEpoch == newest.sentAt.time.secondsSinceEpoch
            if !mayHaveGone, !isOfOther {
                report(
                    .olderOverNewer,
                    by: newest,
                    "exchange \(newest.number) answers, and exchange \(later.number) was sent after it"
                )
            }
        }
    }

    /// Whether a response is one that a cache stores and that would answer this call.
    private func isSurelyStored(_ exchange: AdmissionExchange) -> Bool {
        guard let answer = exchange.answer, answer.status == 200, !answer.isBroken, exchange.call.method == "GET",
            exchange.call.content == nil, call.plan.content == nil, exchange.user == call.plan.user,
            exchange.path == call.plan.path
                || answer.fields.contains("No-Vary-Search")
                    && AdmissionGenerator.paths[exchange.path] == AdmissionGenerator.paths[call.plan.path],
            exchange.call.range == nil, exchange.call.condition == nil, !exchange.call.forbidsStoring,
            let received = model.log.calls.first(where: { $0.plan.number == exchange.call.number }),
            let receivedAt = received.endedAt, receivedAt < call.startedAt, received.source.hasPrefix("network")
        else { return false }
        let control = AdmissionDirectives(answer.fields["Cache-Control"])
        guard !control.has("no-store"), (control.seconds("max-age") ?? 0) > 0,
            model.setting.identity != .preparedField || exchange.user == .guest
        else { return false }
        return model.permits(exchange, for: call.plan.user, control)
            && model.matches(call.plan, exchange, vary: answer.fields["Vary"])
    }

    /// RFC 9111 §4.2: fresh, or allowed stale.
    private mutating func checkAge() {
        if isShared, own.isEmpty, let newest, newest.answer?.status == 200,
            AdmissionDirectives(newest.answer?.fields["Cache-Control"]).has("no-cache")
        {
            report(.stale, by: newest, "it says no-cache, and answers another request than its own")
        }
        guard !isConfirmed, let newest, let status = newest.answer?.status else { return }
        let control = AdmissionDirectives(call.fields["Cache-Control"])
        let isShared = model.setting.mode == .shared
        if control.has("no-cache") { return report(.stale, by: newest, "it says no-cache") }
        guard let age = age(of: newest) else { return }
        let lifetime = lifetime(control, status, newest)
        // The clock of this model reads milliseconds, and HTTP whole seconds.
        let staleness = age - lifetime
        if call.plan.cacheControl == "max-age=5", age >= 7, own.isEmpty, !isWaitedFor {
            report(.notValidated, by: newest, "its age is \(age) s")
        }
        guard staleness >= 1 else { return }
        let forbids = control.has("must-revalidate") || isShared && control.seconds("s-maxage") != nil
        var allowed: Int64 = 0
        if !forbids {
            if call.plan.cacheControl == "max-stale" { allowed = .max }
            if call.plan.cacheControl == "max-stale=20" || call.plan.directive == .maxStale {
                allowed = max(allowed, 20)
            }
            allowed = max(allowed, control.seconds("stale-while-revalidate") ?? 0)
            if own.contains(where: { $0.answer == nil }) { allowed = .max }
            if own.contains(where: { $0.answer?.status ?? 0 >= 500 }) {
                allowed = max(allowed, control.seconds("stale-if-error") ?? 0)
            }
            // A failure of the exchange that others wait for is told to all of them.
            if call.source == "stale", own.isEmpty, isWaitedFor { allowed = .max }
        }
        if staleness > allowed, staleness - allowed >= 1 {
            report(
                .stale,
                by: newest,
                "age \(age) s, lifetime \(lifetime) s, \(forbids ? "to be validated" : "allowed \(allowed) s")"
            )
        }
    }

    /// Whether an exchange of another call failed while this one waited.
    private var isWaitedFor: Bool {
        model.log.exchanges.contains { exchange in
            guard let ended = exchange.endedAt, let end = call.endedAt else { return false }
            return (exchange.answer?.status ?? 500) >= 500 && ended > call.startedAt && ended < end
        }
    }

    /// The age in seconds when the call was made (RFC 9111 §4.2.3).
    private func age(of exchange: AdmissionExchange) -> Int64? {
        guard let ended = exchange.endedAt, let answer = exchange.answer else { return nil }
        func seconds(_ duration: Duration) -> Int64 { duration.components.seconds }
        let apparent = max(0, seconds(ended.time - exchange.sentAt.time))
        let corrected = (answer.fields["Age"].flatMap { Int64($0) } ?? 0) + apparent
        return max(apparent, corrected) + seconds(call.startedAt.time - ended.time)
    }

    private func lifetime(_ control: AdmissionDirectives, _ status: Int, _ newest: AdmissionExchange) -> Int64 {
        if model.setting.mode == .shared, let seconds = control.seconds("s-maxage") { return seconds }
        if let seconds = control.seconds("max-age") { return seconds }
        let isGuessable = [200, 203, 204, 206, 300, 301, 304, 308, 404, 405, 410, 414, 501].contains(status)
        guard isGuessable || control.has("public"), let text = call.fields["Last-Modified"],
            let modified = HTTPDate(text, receivedAt: newest.sentAt.time)
        else { return 0 }
        let since = (newest.sentAt.time - modified.timestamp).components.seconds
        return min(max(0, since / 10), 7 * 86_400)
    }

    /// RFC 9111 §4.4, and of what was under way the issue: what was asked for before an unsafe request was answered is not served after it.
    private mutating func checkInvalidation() {
        guard let newest, !(isConfirmed && !isShared) else { return }
        for change in model.log.exchanges where change.call.isUnsafe {
            guard let ended = change.endedAt, newest.sentAt < ended,
                AdmissionGenerator.paths[change.path] == AdmissionGenerator.paths[newest.path],
                // A query of the same path is another resource, unless the stored response says that it is not.
                !change.path.contains("?") || change.path == newest.path || call.fields.contains("No-Vary-Search"),
                change.answer.map({ (200..<400).contains($0.status) }) ?? true,
                let known = model.log.calls.first(where: { $0.plan.number == change.call.number })?.endedAt,
                known < call.startedAt
            else { continue }
            let isHers = change.user == call.plan.user
            // In shared mode what all may use is of nobody, and goes with anybody's change.
            guard isHers || model.setting.mode == .shared && newest.user == .guest else { continue }
            return report(
                .invalidated,
                by: newest,
                "exchange \(newest.number) was sent before exchange \(change.number) (\(change.call.method)) ended"
            )
        }
    }

    /// RFC 9111 §5.2.1: what the request asks.
    private mutating func checkDemands() {
        guard call.plan.demandsValidation, !call.plan.forbidsSending, own.isEmpty, !evidence.bodies.isEmpty else {
            return
        }
        guard var newest else { return }
        if call.source == "collapsed", let awaited { newest = awaited }
        if newest.endedAt.map({ $0 < call.startedAt }) ?? true {
            report(.notValidated, by: newest, "exchange \(newest.number) had ended before")
        } else if newest.sentAt < call.startedAt, call.plan.directive != .none || !newest.call.demandsValidation {
            // Who says `no-cache` may be answered with one who said it too; a call that says it to the cache may not.
            report(.joinedEarlier, by: newest, "exchange \(newest.number) was sent before")
        }
    }

    /// RFC 9110 §13.2.2, §15.4.5: a 304 answers only a condition of the caller's own.
    private mutating func checkCondition() {
        if call.plan.isQuery, call.plan.condition != nil, own.isEmpty, !call.plan.forbidsSending {
            report(.wrongCondition, by: newest, "a condition on a POST is the origin's to judge")
        }
        guard call.status == 304 else { return }
        if let expected = call.requestFields["If-None-Match"] {
            // What the origin itself answered, it judged.
            if expected == "*" || foreign.isEmpty { return }
            let shown = call.fields["ETag"].map { AdmissionOrigin.opaque($0) }
            if AdmissionOrigin.tags(expected).contains(where: { AdmissionOrigin.opaque($0) == shown }) { return }
            report(.wrongCondition, by: newest, "If-None-Match: \(expected)")
        } else if call.requestFields["If-Modified-Since"] == nil {
            report(.wrongCondition, by: own.last ?? newest, "no condition")
        }
    }

    // MARK: Content

    /// RFC 9111 §3.3, §3.4, RFC 9110 §15.3.7: whole means whole, and parts belong together.
    private mutating func checkContent() {
        if evidence.isGarbled { return report(.incomplete, .answer, "the body is no row of cells: \(call.body)") }
        let sources = evidence.bodies.sorted().compactMap { model.exchange($0) }
        let answers = sources.compactMap(\.answer)
        guard let first = answers.first, !call.isBroken else { return }
        var expected = 0..<first.length
        if call.status == 206 {
            guard let range = call.fields["Content-Range"], let interval = ContentRange(parsing: range)?.interval else {
                if call.fields["Content-Type"]?.hasPrefix("multipart/") ?? false { return }
                return report(.incomplete, .answer, "a 206 without Content-Range")
            }
            let size = Int64(AdmissionOrigin.cellSize)
            expected = Int(interval.lowerBound / size)..<Int(interval.upperBound / size)
            if call.plan.range == nil { report(.incomplete, .answer, "a 206 to a request for the whole") }
        }
        if evidence.cells.map(\.index) != Array(expected) {
            report(.incomplete, .answer, "cells \(evidence.cells.map(\.index)), and \(expected) were to be there")
        }
        let coding = call.fields["Content-Encoding"]
        for (source, answer) in zip(sources, answers) {
            if (coding == "gzip") != answer.representation.isCompressed {
                report(.mixedParts, .answer, "exchange \(source.number) has another coding than \(coding ?? "none")")
            }
            if answer.representation.isCompressed != first.representation.isCompressed || answer.length != first.length
                || source.number != sources[0].number && !sharesStrongValidator(source, sources[0])
            {
                report(
                    .mixedParts,
                    .answer,
                    "exchanges \(sources[0].number) and \(source.number) do not belong together"
                )
            }
        }
    }

    private func sharesStrongValidator(_ left: AdmissionExchange, _ right: AdmissionExchange) -> Bool {
        guard let one = left.answer?.fields, let other = right.answer?.fields else { return false }
        if let tag = one["ETag"], tag == other["ETag"] { return !tag.hasPrefix("W/") }
        if one["ETag"] != nil, other["ETag"] != nil { return false }
        guard let modified = one["Last-Modified"], modified == other["Last-Modified"] else { return false }
        return modified != one["Date"] && modified != other["Date"]
    }

    /// RFC 9530 §2, §3: Repr-Digest is of the whole representation, Content-Digest of the content of the message.
    private mutating func checkDigests() {
        let sources = evidence.bodies.compactMap { model.exchange($0) }
        guard !sources.isEmpty, !call.isBroken else { return }
        if let number = evidence.exchange(of: "Repr-Digest"), let digest = model.exchange(number)?.answer,
            sources.contains(where: { $0.answer?.representation != digest.representation })
        {
            report(
                .wrongDigest,
                by: model.exchange(number),
                "Repr-Digest is of exchange \(number), of another representation"
            )
        }
        for name: FieldName in ["Content-Digest", "Content-MD5"] {
            guard let number = evidence.exchange(of: name), let said = model.exchange(number), let digest = said.answer
            else {
                continue
            }
            // An equal strong tag says that a 304 speaks of these very bytes, whose field RFC 9111 §3.2 has updated.
            if name == "Content-MD5", let tag = digest.fields["ETag"], !tag.hasPrefix("W/"),
                sources.allSatisfy({ $0.answer?.fields["ETag"] == tag })
            {
                continue
            }
            // A HEAD has the fields that a GET would have had.
            let isSame = sources.allSatisfy { $0.answer?.representation == digest.representation }
            if !isSame || digest.content.count != evidence.cells.count
                || digest.content.lowerBound != evidence.cells.first?.index
            {
                report(.wrongDigest, by: said, "\(name) is of exchange \(number), of other content")
            }
        }
    }
}
