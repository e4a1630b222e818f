// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("RETRY §3.6.6: what an unanswered write may have changed (RFC 9111 §4.4)", .timeLimit(.minutes(20)))
struct AmbiguousWriteTests {
    /// How one attempt of the write ends.
    enum Attempt: Sendable {
        case lost, refused, silent
        case status(Int)

        var step: ScriptedTransport.Step {
            switch self {
            case .lost: .fail(progress: .bodySent)
            case .refused: .fail(.connect, progress: .notSent)
            case .silent: .silence
            case .status(let status): .respond(status)
            }
        }
    }

    static func bench(_ attempts: [Attempt], _ change: (inout RetryRules) -> Void = { _ in }) async throws -> CacheBench
    {
        let steps: [ScriptedTransport.Step] =
            [.respond(200, cacheable, body: "old")] + attempts.map(\.step) + [.respond(200, cacheable, body: "new")]
        let bench = CacheBench(
            ScriptedTransport(steps),
            clock: ManualClock(autoAdvances: true),
            retrierFactory: .seeded(change)
        )
        try await bench.load()
        return bench
    }

    @Test(
        "§3.6.6, E12: a PUT that any attempt may have applied invalidates, whatever came last",
        arguments: [
            ([.lost, .lost, .lost], true), ([.silent], true), ([.lost, .refused, .refused], true),
            ([.lost, .status(503), .status(503)], true), ([.lost, .status(412)], true), ([.lost, .status(404)], true),
            ([.status(504), .status(503), .status(503)], true), ([.status(502), .status(502), .status(502)], true),
            ([.refused, .refused, .refused], false), ([.status(503), .status(503), .status(503)], false),
            ([.status(500), .status(500), .status(500)], false), ([.status(412)], false),
        ] as [([Attempt], Bool)]
    )
    func afterRetries(_ attempts: [Attempt], _ invalidates: Bool) async throws {
        let bench = try await Self.bench(attempts)
        var options = CallOptions()
        options.timeout = .seconds(50)
        _ = try? await bench.load(.request("PUT", "http://origin.example/a"), options)
        #expect(bench.sends == 1 + attempts.count)
        #expect(try await bench.load() == (invalidates ? .network("new") : .fresh("old")))
    }

    @Test(
        "§3.6.6: a POST that is not sent twice invalidates after its one ambiguous attempt",
        arguments: ["POST", "PATCH"]
    )
    func notIdempotent(_ method: String) async throws {
        let bench = try await Self.bench([.lost])
        await #expect(throws: ServiceError.self) {
            try await bench.load(.request(method, "http://origin.example/a"))
        }
        #expect(bench.sends == 2)
        #expect(try await bench.load() == .network("new"))
    }

    @Test("§3.6.6: so does a write whose caller leaves during the next backoff")
    func cancelledDuringBackoff() async throws {
        let clock = ManualClock()
        let bench = CacheBench(
            ScriptedTransport([
                .respond(200, cacheable, body: "old"), .fail(progress: .bodySent),
                .respond(200, cacheable, body: "new"),
            ]),
            clock: clock,
            retrierFactory: .seeded { $0.waits(.seconds(10)) }
        )
        try await bench.load()
        let put = Task { try await bench.load(.request("PUT", "http://origin.example/a")) }
        try await clock.waitForSleeps(1)
        put.cancel()
        await #expect(throws: CancellationError.self) { try await put.value }
        await bench.pipeline.drain()
        #expect(clock.sleeperCount == 0)
        #expect(try await bench.load() == .network("new"))
    }

    @Test("§3.6.6: a read invalidates nothing, however it fails", arguments: ["GET", "HEAD", "OPTIONS"])
    func safe(_ method: String) async throws {
        let bench = try await Self.bench([.lost, .status(504), .status(502)])
        var request = URLRequest.request(method, "http://origin.example/a")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        _ = try? await bench.load(request)
        #expect(bench.sends == 4)
        #expect(try await bench.load() == .fresh("old"))
    }
}
