// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Fetches under load", .timeLimit(.minutes(20)))
struct FetchStressTests {
    /// A body of equal bytes, whose chunks come whenever the task gets its turn.
    private final class YieldingSource: ByteSource {
        private let left: Mutex<Int>
        private let byte: UInt8
        private let isCancelled = Atomic(false)

        init(_ chunks: Int, _ byte: UInt8) {
            left = Mutex(chunks)
            self.byte = byte
        }

        func next() async throws -> ByteChunk? {
            await Task.yield()
            try Task.checkCancellation()
            if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
            let isLeft = left.withLock { left in
                left -= 1
                return left >= 0
            }
            return isLeft ? ByteChunk([UInt8](repeating: byte, count: FetchStressTests.chunk)) : nil
        }

        func cancel() { isCancelled.store(true, ordering: .relaxed) }
    }

    private static let chunk = 20_000
    private static let chunks = 9

    private static func answer(_ request: URLRequest, _ number: Int) throws -> Response {
        guard request.httpMethod == "GET" else { return .answer(204) }
        switch number % 11 {
        case 0: throw ServiceError(.connectionLost, "scripted", progress: .headSent)
        case 1: return .answer(503, [:], "no")
        case 2: return .answer(200, ["Cache-Control": "no-store"], "x")
        default: break
        }
        let fields: HeaderFields = [
            "Cache-Control": number % 3 == 0 ? "max-age=0, stale-while-revalidate=60" : "max-age=60",
            "Vary": "X-Tenant", "ETag": "\"\(number % 2)\"",
        ]
        if let condition = request.value(forHTTPHeaderField: "If-None-Match"), number % 2 == 0 {
            return .answer(304, ["ETag": HeaderFields.Line(name: "ETag", value: condition).value])
        }
        let tenant = UInt8(request.value(forHTTPHeaderField: "X-Tenant") ?? "") ?? 0
        if number % 5 == 0 { return .answer(200, fields, String(repeating: "\(tenant)", count: 9)) }
        return .stream(200, fields, YieldingSource(chunks, tenant), number % 2 == 0 ? chunk * chunks : nil)
    }

    /// Whether a body that was read to its end is whole, and for the tenant who asked.
    private static func isRight(_ body: ByteChunk, _ tenant: Int) -> Bool {
        let bytes = body.array
        guard let first = bytes.first else { return false }
        if bytes.count <= 9 { return [UInt8(48 + tenant), UInt8(ascii: "n"), UInt8(ascii: "x")].contains(first) }
        return bytes.count == chunk * chunks && bytes.allSatisfy { $0 == UInt8(tenant) }
    }

    @Test(
        "Hundreds of callers, cancellations, streams, invalidations: nothing is left over, every complete body is right",
        arguments: [1, 2, 3] as [UInt64]
    )
    func stress(_ seed: UInt64) async throws {
        let origin = GatedOrigin { request, number in
            for _ in 0..<(number % 7) { await Task.yield() }
            return try Self.answer(request, number)
        }
        origin.open(5_000)
        var options = CacheOptions()
        options.abandonedBodyAllowance = 60_000
        options.maximumBackgroundRevalidations = 3
        let bench = FetchBench(origin, store: MemoryStore(capacity: 1 << 20), options: options)
        var random = SeededGenerator(seed: seed)
        let wrong = CountWatch()
        let right = CountWatch()
        var calls: [Task<Void, Never>] = []
        for index in 0..<400 {
            let tenant = Int.random(in: 0...2, using: &random)
            let isUnsafe = index % 23 == 0
            let request = URLRequest.request(
                isUnsafe ? "PUT" : "GET",
                "http://origin.example/\(Int.random(in: 0..<4, using: &random))",
                ["X-Tenant": "\(tenant)"]
            )
            var callOptions = CallOptions()
            if index % 5 == 0 { callOptions.cache.serveStaleAfter = .zero }
            if index % 7 == 0 { callOptions.timeout = .seconds(60) }
            if index % 13 == 0 { callOptions.acceptance = .successful }
            let reads = Int.random(in: 0...14, using: &random)
            let pause = Int.random(in: 0...9, using: &random)
            let call = Task { [callOptions] in
                guard let response = try? await bench.pipeline.send(request, options: callOptions), !isUnsafe else {
                    return
                }
                if reads < 4 {
                    var chunks = response.body.makeAsyncIterator()
                    for _ in 0..<reads { _ = try? await chunks.next() }
                    return
                }
                for _ in 0..<pause { await Task.yield() }
                guard let body = try? await response.body.collect() else { return }
                if Self.isRight(body, tenant) { right.increment() } else { wrong.increment() }
            }
            calls.append(call)
            if index % 3 == 0 {
                calls[Int.random(in: 0..<calls.count, using: &random)].cancel()
                await Task.yield()
            }
            if index % 50 == 0 { bench.clock.advance(by: .seconds(15)) }
        }
        for call in calls { await call.value }
        await bench.waitForQuiet()
        #expect(wrong.count == 0, "seed \(seed)")
        #expect(right.count > 20, "seed \(seed)")
        #expect(bench.cache.fetches.count == 0)
        #expect(bench.cache.fetches.backgroundCount == 0)
        await until { bench.clock.sleeperCount == 0 }
        let counted = bench.cache.statistics
        let answered =
            counted.hits + counted.staleHits + counted.revalidatingHits + counted.staleOnError + counted.revalidated
            + counted.collapsed + counted.misses + counted.bypasses
        #expect(answered <= counted.requests && answered > 300)
    }
}
