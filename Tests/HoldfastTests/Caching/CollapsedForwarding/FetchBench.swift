// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An origin whose answers a test makes itself, and that counts what it is asked.
final class GatedOrigin: Transport {
    let asked = CountWatch()
    let cancelled = CountWatch()
    /// How many requests may be answered.
    let gate = CountWatch()
    let requests = Mutex<[URLRequest]>([])
    private let answer: @Sendable (URLRequest, Int) async throws -> Response

    init(_ answer: @escaping @Sendable (_ request: URLRequest, _ number: Int) async throws -> Response) {
        self.answer = answer
    }

    var enforcesDeadline: Bool { false }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let number = requests.withLock { requests in
            requests.append(request)
            return requests.count
        }
        asked.increment()
        do {
            try await gate.wait(for: number)
        } catch {
            cancelled.increment()
            throw error
        }
        return try await answer(request, number)
    }

    /// Lets so many more requests be answered.
    func open(_ count: Int = 1) {
        for _ in 0..<count { gate.increment() }
    }

    func sent(_ field: String) -> [String?] {
        requests.withLock { $0.map { $0.value(forHTTPHeaderField: field) } }
    }
}

/// A body that hands out a chunk for each turn its gate has counted.
final class GatedSource: ByteSource {
    let gate = CountWatch()
    let pulled = CountWatch()
    /// Counts the ways in which the transfer came to its end: cancelled, or let go.
    let ended: CountWatch
    private let chunks: [ByteChunk]
    private let failure: (any Error)?
    private let next_ = Mutex(0)

    init(_ chunks: [ByteChunk], failure: (any Error)? = nil, ended: CountWatch = CountWatch()) {
        self.chunks = chunks
        self.failure = failure
        self.ended = ended
    }

    deinit { ended.increment() }

    func next() async throws -> ByteChunk? {
        let index = next_.withLock { next in
            defer { next += 1 }
            return next
        }
        pulled.increment()
        try await gate.wait(for: index + 1)
        if ended.count > 0 { throw CancellationError() }
        if index < chunks.count { return chunks[index] }
        if let failure { throw failure }
        return nil
    }

    func cancel() {
        ended.increment()
        open(1_000)
    }

    func open(_ count: Int = 1) {
        for _ in 0..<count { gate.increment() }
    }
}

extension Response {
    static func answer(_ status: Int = 200, _ fields: HeaderFields = HeaderFields(), _ body: String = "") -> Response {
        Response(
            status: StatusCode(rawValue: status),
            fields: fields,
            body: ResponseBody(ByteChunk(copying: body.utf8))
        )
    }

    static func stream(_ status: Int = 200, _ fields: HeaderFields, _ source: any ByteSource, _ length: Int?)
        -> Response
    {
        Response(status: StatusCode(rawValue: status), fields: fields, body: ResponseBody(source, length: length))
    }
}

/// A pipeline with a cache over a gated origin.
struct FetchBench {
    let clock = ManualClock()
    let origin: GatedOrigin
    let cache: HTTPCache
    let pipeline: Pipeline

    init(
        _ origin: GatedOrigin,
        store: any CacheStore = MemoryStore(capacity: 16 << 20),
        retrierFactory: any RetrierFactory = NilRetrier.Factory(),
        options: CacheOptions = CacheOptions(),
        _ change: (inout PipelineConfiguration) -> Void = { _ in }
    ) {
        self.origin = origin
        cache = HTTPCache(store: store, options: options)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        change(&configuration)
        pipeline = Pipeline(
            transport: origin,
            cache: cache,
            retrierFactory: retrierFactory,
            configuration: configuration
        )
    }

    func call(_ request: URLRequest = .get(), _ options: CallOptions = CallOptions()) -> Task<
        CacheBench.Answer, any Error
    > {
        Task {
            let response = try await pipeline.send(request, options: options)
            let body = String(decoding: try await response.body.collect(), as: UTF8.self)
            return .init(status: response.status.rawValue, body: body, source: response.source)
        }
    }

    func calls(
        _ count: Int,
        _ request: URLRequest = .get(),
        _ options: CallOptions = CallOptions()
    ) -> [Task<CacheBench.Answer, any Error>] {
        (0..<count).map { _ in call(request, options) }
    }

    func load(_ request: URLRequest = .get(), _ options: CallOptions = CallOptions()) async throws -> CacheBench.Answer
    {
        try await call(request, options).value
    }

    /// Waits until so many calls are in fetches.
    func waitForReaders(_ count: Int) async { await until { cache.fetches.readers >= count } }

    /// Waits until nothing is in the air any more.
    func waitForQuiet() async {
        await pipeline.drain()
        await until { cache.fetches.count == 0 && cache.fetches.backgroundCount == 0 }
    }

    var sends: Int { origin.asked.count }
}

/// Lets other tasks run until something holds; the suite's time limit ends a wait in vain.
func until(_ holds: () -> Bool) async {
    while !holds(), !Task.isCancelled { await Task.yield() }
}

extension CacheBench.Answer {
    static func collapsed(_ body: String, _ status: Int = 200) -> Self {
        .init(status: status, body: body, source: .collapsed)
    }

    static func stale(_ body: String) -> Self {
        .init(status: 200, body: body, source: .stale)
    }
}

let cacheable: HeaderFields = ["Cache-Control": "max-age=60"]
