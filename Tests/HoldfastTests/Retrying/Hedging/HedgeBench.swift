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

/// What tests of hedging share: rules under which every attempt may be hedged after 10 ms, and requests of many kinds.
struct HedgeBench {
    /// A request, and whether it may be sent twice.
    struct Case: Sendable, CustomStringConvertible {
        var method: String
        var body = RequestBody.none
        var declared: Bool?
        var key: String?
        var isHedged: Bool

        init(
            _ method: String,
            body: RequestBody = .none,
            declared: Bool? = nil,
            key: String? = nil,
            isHedged: Bool
        ) {
            self.method = method
            self.body = body
            self.declared = declared
            self.key = key
            self.isHedged = isHedged
        }

        var description: String {
            "\(method) replayable \(body.isReplayable) declared \(declared.map { "\($0)" } ?? "–") key \(key ?? "–")"
        }
    }

    static let cases = [
        Case("GET", isHedged: true), Case("HEAD", isHedged: true),
        Case("PUT", body: .data(Data("x".utf8)), isHedged: true),
        Case("POST", isHedged: false), Case("PATCH", isHedged: false),
        Case("POST", declared: true, isHedged: true), Case("GET", declared: false, isHedged: false),
        Case("POST", key: "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", isHedged: true),
        Case("PUT", body: .oneShot(ChunkList(["x"])), isHedged: false),
    ]

    var rules: HedgeRules {
        var rules = HedgeRules()
        rules.fixedDelay = .milliseconds(10)
        rules.maxExtraLoad = 1
        return rules
    }

    func send(
        _ transport: HedgedTransport,
        _ clock: ManualClock,
        _ each: Case = Case("GET", isHedged: true),
        deadline: Duration? = nil
    ) async throws -> Response {
        var request = URLRequest.get()
        request.httpMethod = each.method
        if let key = each.key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        var options = CallOptions()
        options.isIdempotent = each.declared
        let context = CallContext(
            clock: clock,
            deadline: deadline.map(MonotonicInstant.init(sinceOrigin:)),
            options: options
        )
        return try await transport.send(request, body: each.body, context: context)
    }
}

/// A body of chunks that says whether it was read to its end or given up.
final class ChunkList: ByteSource {
    private let chunks: Mutex<ArraySlice<String>>
    private let read: CountWatch
    private let discarded: CountWatch
    private let isOver = Mutex(false)

    init(_ chunks: [String], read: CountWatch = CountWatch(), discarded: CountWatch = CountWatch()) {
        self.chunks = Mutex(chunks[...])
        self.read = read
        self.discarded = discarded
    }

    deinit { end(discarded) }

    func next() async throws -> ByteChunk? {
        if let chunk = chunks.withLock({ $0.popFirst() }) { return ByteChunk(copying: chunk.utf8) }
        end(read)
        return nil
    }

    func cancel() { end(discarded) }

    private func end(_ watch: CountWatch) {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        if isFirst { watch.increment() }
    }
}

/// A transport whose first copy, and any one while it is silent, waits to be released whatever is cancelled.
final class StubbornTransport: Transport {
    let sends = CountWatch()
    let discarded = CountWatch()
    let isSilent = CountWatch()
    private let held = Mutex<[CheckedContinuation<Void, Never>]>([])

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        sends.increment()
        let number = sends.count
        if number == 1 || isSilent.count > 0 {
            await withCheckedContinuation { continuation in held.withLock { $0.append(continuation) } }
        }
        return Response(status: .ok, body: ResponseBody(ChunkList(["\(number)"], discarded: discarded)))
    }

    func release() {
        let all = held.withLock { held in
            defer { held = [] }
            return held
        }
        for continuation in all { continuation.resume() }
    }
}

/// A transport that answers after a few turns and counts what becomes of the bodies it makes.
final class CountingTransport: Transport {
    let started = CountWatch()
    let ended = CountWatch()
    let made = CountWatch()
    let read = CountWatch()
    let discarded = CountWatch()

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        started.increment()
        defer { ended.increment() }
        for _ in 0..<(started.count % 4) { await Task.yield() }
        made.increment()
        return Response(status: .ok, body: ResponseBody(ChunkList(["x"], read: read, discarded: discarded)))
    }
}
