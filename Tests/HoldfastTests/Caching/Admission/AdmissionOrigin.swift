// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An origin that answers each call as the sequence has planned, and marks all that it says with the number of the exchange.
///
/// A body is a row of cells of eight bytes, `e012c03;` for cell 3 of exchange 12. A version has the same length in each coding.
final class AdmissionOrigin: Transport {
    static let callField = "X-Call"
    static let cellSize = 8

    private struct Resource {
        var version = 1
        var changedAt: Timestamp
    }

    private struct State {
        var log = AdmissionLog()
        var plans: [Int: (call: PlannedCall, answer: PlannedAnswer, isHeld: Bool)] = [:]
        var gates: [Int: CountWatch] = [:]
        var resources: [String: Resource] = [:]
        var waiting: Set<Int> = []
        var lastOrder = 0
    }

    private let clock: ManualClock
    private let start: Timestamp
    private let state = Mutex(State())

    init(clock: ManualClock) {
        self.clock = clock
        start = clock.timestamp
    }

    var enforcesDeadline: Bool { true }
    var log: AdmissionLog { state.withLock { $0.log } }
    /// The calls of which an exchange waits for its release.
    var heldCalls: Set<Int> { state.withLock { $0.waiting } }

    // MARK: The course of a run

    func plan(_ call: PlannedCall, answer: PlannedAnswer, isHeld: Bool) {
        state.withLock { state in
            state.plans[call.number] = (call, answer, isHeld)
            if isHeld { state.gates[call.number] = CountWatch() }
        }
    }

    func release(call: Int) {
        state.withLock { state in
            _ = state.waiting.remove(call)
            return state.gates.removeValue(forKey: call)
        }?.increment()
    }

    func change(path: String) {
        state.withLock { change(path: path, &$0) }
    }

    func begin(_ plan: PlannedCall, fields: HeaderFields) -> Int {
        state.withLock { state in
            let call = AdmissionCall(plan: plan, requestFields: fields, startedAt: moment(&state))
            state.log.calls.append(call)
            return state.log.calls.count - 1
        }
    }

    func end(call index: Int, _ change: (inout AdmissionCall) -> Void) {
        state.withLock { state in
            change(&state.log.calls[index])
            state.log.calls[index].endedAt = moment(&state)
        }
    }

    /// The tag and the date that a caller would know of a resource.
    func validators(
        of path: String,
        for user: AdmissionUser,
        _ answer: PlannedAnswer,
        isOld: Bool
    ) -> (tag: String, date: String) {
        state.withLock { state in
            var resource = state.resources[AdmissionOrigin.resource(path)] ?? Resource(changedAt: start)
            if isOld { resource.version -= 1 }
            let isCompressed = answer.coding == .gzip
            let date = modified(resource, answer.modified) ?? resource.changedAt
            return (
                tag(resource.version, answer, for: user, isCompressed: isCompressed) ?? "\"none\"",
                HTTPDate(date).description
            )
        }
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let fields = HeaderFields(request.allHTTPHeaderFields ?? [:])
        guard let number = fields["X-Call"].flatMap({ Int($0) }), let url = request.url else {
            throw ServiceError(.unsupported, "a request of no call")
        }
        let method = request.httpMethod ?? "GET"
        let path = String(url.absoluteString.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })
        let (index, gate) = state.withLock { state in
            let plan = state.plans[number]
            var exchange = AdmissionExchange(
                number: state.log.exchanges.count + 1,
                call: plan?.call ?? PlannedCall(number: number),
                path: path,
                sentFields: fields,
                hasContent: !body.isNone,
                sentAt: moment(&state)
            )
            exchange.answer = answer(to: exchange, method: method, plan?.answer ?? PlannedAnswer(), &state)
            if let answer = plan?.answer, exchange.call.isUnsafe, answer.outcome == .success || answer.outcome == .lost
            {
                change(path: exchange.path, &state)
            }
            state.log.exchanges.append(exchange)
            let gate = state.gates[number]
            if gate != nil { state.waiting.insert(number) }
            return (exchange.number - 1, gate)
        }
        do {
            try await gate?.wait(for: 1)
        } catch {
            state.withLock { state in
                state.waiting.remove(number)
                state.log.exchanges[index].answer = nil
                state.log.exchanges[index].endedAt = moment(&state)
            }
            throw error
        }
        let exchange = state.withLock { state in
            state.log.exchanges[index].endedAt = moment(&state)
            return state.log.exchanges[index]
        }
        guard let answer = exchange.answer else {
            throw ServiceError(.connectionLost, "planned", progress: .bodySent)
        }
        let cells = method == "HEAD" ? [] : answer.cells.map { AdmissionOrigin.cell(exchange: exchange.number, $0) }
        let content: ResponseBody
        if answer.isBroken {
            content = ResponseBody(BrokenCells(cells), length: answer.length * AdmissionOrigin.cellSize)
        } else {
            content = ResponseBody(ByteChunk(copying: cells.joined().utf8))
        }
        return Response(status: StatusCode(rawValue: answer.status), fields: answer.fields, body: content, url: url)
    }

    // MARK: What it answers

    private func answer(
        to exchange: AdmissionExchange,
        method: String,
        _ plan: PlannedAnswer,
        _ state: inout State
    ) -> AdmissionExchange.Answer? {
        let resource = state.resources[AdmissionOrigin.resource(exchange.path)] ?? Resource(changedAt: start)
        let request = exchange.sentFields
        let isCompressed =
            switch plan.coding {
            case .identity: false
            case .gzip: true
            case .negotiated: request["Accept-Encoding"]?.contains("gzip") ?? false
            }
        let length = 4 + resource.version % 3
        var answer = AdmissionExchange.Answer(
            status: 200,
            fields: fields(of: exchange, plan),
            cells: 0..<length,
            length: length,
            representation: .init(
                path: AdmissionOrigin.resource(exchange.path) + (plan.isPersonal ? " of \(exchange.user)" : ""),
                version: resource.version,
                isCompressed: isCompressed
            )
        )
        switch plan.outcome {
        case .lost: return nil
        case .failure(let status):
            answer.status = status
            answer.representation.version = -exchange.number
            finish(&answer, exchange, plan)
            return answer
        case .success: break
        }
        let tag = tag(resource.version, plan, for: exchange.user, isCompressed: isCompressed)
        let modified = modified(resource, plan.modified)
        if exchange.call.isUnsafe {
            answer.representation.version = -exchange.number
            finish(&answer, exchange, plan)
            return answer
        }
        if let expected = request["If-Match"], !AdmissionOrigin.tags(expected).contains(tag ?? "") {
            answer.status = 412
            answer.representation.version = -exchange.number
            finish(&answer, exchange, plan)
            return answer
        }
        if plan.honorsConditions, isUnchanged(request, tag: tag, modified: modified, answeredAt: exchange.sentAt.time) {
            answer.status = 304
            answer.cells = 0..<0
            if !plan.notModifiedHasCacheControl { answer.fields.removeAll(.cacheControl) }
            if plan.notModifiedHasValidators { validators(&answer, tag: tag, modified: modified) }
            return answer
        }
        validators(&answer, tag: tag, modified: modified)
        if method == "GET", plan.honorsRange, ifRangeHolds(request, tag: tag, modified: modified),
            let range = request["Range"].flatMap({ AdmissionOrigin.cells(of: $0, length: length) })
        {
            answer.status = 206
            answer.cells = range
            let size = AdmissionOrigin.cellSize
            answer.fields["Content-Range"] =
                "bytes \(range.lowerBound * size)-\(range.upperBound * size - 1)/\(length * size)"
        } else if method == "GET", let breaksAfter = plan.breaksAfter {
            answer.cells = 0..<min(breaksAfter, length - 1)
            answer.isBroken = true
        }
        finish(&answer, exchange, plan)
        return answer
    }

    private func fields(of exchange: AdmissionExchange, _ plan: PlannedAnswer) -> HeaderFields {
        var fields: HeaderFields = [
            "X-Stamp": "\(exchange.number)", "Date": HTTPDate(exchange.sentAt.time).description,
        ]
        if !plan.cacheControl.isEmpty {
            fields["Cache-Control"] = (plan.cacheControl + ["stamp=\(exchange.number)"]).joined(separator: ", ")
        }
        if let vary = plan.vary { fields["Vary"] = vary }
        if exchange.path.contains("?"), plan.saysQueryIsNothing { fields["No-Vary-Search"] = "params=(\"s\")" }
        if plan.setsCookie { fields["Set-Cookie"] = "sid=\(exchange.user.rawValue).\(exchange.number)" }
        if let age = plan.age { fields["Age"] = "\(age)" }
        for digest in plan.digests {
            fields[digest.name] = digest == .md5 ? "\(exchange.number)" : "sha-256=:\(exchange.number):"
        }
        return fields
    }

    /// What describes the content of a message that is no 304.
    private func finish(_ answer: inout AdmissionExchange.Answer, _ exchange: AdmissionExchange, _ plan: PlannedAnswer)
    {
        if answer.representation.isCompressed { answer.fields["Content-Encoding"] = "gzip" }
        let count = answer.isBroken ? answer.length : answer.cells.count
        answer.fields["Content-Length"] = "\(count * AdmissionOrigin.cellSize)"
    }

    private func validators(_ answer: inout AdmissionExchange.Answer, tag: String?, modified: Timestamp?) {
        if let tag { answer.fields["ETag"] = tag }
        if let modified { answer.fields["Last-Modified"] = HTTPDate(modified).description }
    }

    private func isUnchanged(_ request: HeaderFields, tag: String?, modified: Timestamp?, answeredAt: Timestamp) -> Bool
    {
        if let expected = request["If-None-Match"] {
            if expected == "*" { return true }
            guard let tag else { return false }
            return AdmissionOrigin.tags(expected).contains { AdmissionOrigin.opaque($0) == AdmissionOrigin.opaque(tag) }
        }
        guard let modified, let text = request["If-Modified-Since"], let date = HTTPDate(text, receivedAt: answeredAt)
        else {
            return false
        }
        return HTTPDate(modified) <= date
    }

    private func ifRangeHolds(_ request: HeaderFields, tag: String?, modified: Timestamp?) -> Bool {
        guard let validator = request["If-Range"] else { return true }
        return validator == tag && !validator.hasPrefix("W/") || validator == modified.map { HTTPDate($0).description }
    }

    private func tag(_ version: Int, _ plan: PlannedAnswer, for user: AdmissionUser, isCompressed: Bool) -> String? {
        let name = "v\(version)" + (plan.isPersonal ? "-\(user)" : "")
        return switch plan.tag {
        case .none: nil
        case .weak: "W/\"\(name)\""
        case .strong: "\"\(name)\(isCompressed ? "-gzip" : "")\""
        }
    }

    private func modified(_ resource: Resource, _ kind: PlannedAnswer.Modified) -> Timestamp? {
        switch kind {
        case .none: nil
        case .recent: resource.changedAt
        case .old: Timestamp(secondsSinceEpoch: 1_690_000_000 + Int64(resource.version) * 1_000)
        }
    }

    private func change(path: String, _ state: inout State) {
        var resource = state.resources[AdmissionOrigin.resource(path)] ?? Resource(changedAt: start)
        resource.version += 1
        resource.changedAt = clock.timestamp
        state.resources[AdmissionOrigin.resource(path)] = resource
    }

    private func moment(_ state: inout State) -> AdmissionMoment {
        state.lastOrder += 1
        return AdmissionMoment(order: state.lastOrder, time: clock.timestamp)
    }

    // MARK: Spelling

    static func cell(exchange: Int, _ index: Int) -> String {
        func padded(_ number: Int, _ width: Int) -> String {
            let text = "\(number)"
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return "e" + padded(exchange, 3) + "c" + padded(index, 2) + ";"
    }

    /// The query tells no two resources apart.
    private static func resource(_ path: String) -> String { String(path.prefix { $0 != "?" }) }

    static func tags(_ list: String) -> [String] {
        list.split(separator: ",").map { String($0.drop { $0 == " " }) }
    }

    static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }

    /// The cells that a single range asks for; nil where it is none that fits.
    private static func cells(of range: String, length: Int) -> Range<Int>? {
        guard range.hasPrefix("bytes="), !range.contains(",") else { return nil }
        let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let whole = length * cellSize
        var first: Int
        var end = whole
        if ends[0].isEmpty {
            first = max(0, whole - (Int(ends[1]) ?? 0))
        } else {
            first = Int(ends[0]) ?? 0
            if let last = Int(ends[1]) { end = min(whole, last + 1) }
        }
        guard first < end, first % cellSize == 0, end % cellSize == 0 else { return nil }
        first /= cellSize
        return first..<end / cellSize
    }
}

/// A body that breaks off after some cells.
private final class BrokenCells: ByteSource {
    private let cells: Mutex<[String]>

    init(_ cells: [String]) {
        self.cells = Mutex(cells)
    }

    func next() async throws -> ByteChunk? {
        let next = cells.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let next else { throw ServiceError(.connectionLost, "planned", progress: .bytesReceived) }
        return ByteChunk(copying: next.utf8)
    }

    func cancel() {
        cells.withLock { $0 = [] }
    }
}
