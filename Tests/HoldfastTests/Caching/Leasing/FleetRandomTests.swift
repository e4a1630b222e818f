// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("One fill for a fleet: any interleaving", .timeLimit(.minutes(20)))
struct FleetRandomTests {
    private static func answer(_ number: Int, seed: UInt64) throws -> Response {
        var random = SeededGenerator(seed: seed &+ UInt64(number))
        switch Int.random(in: 0..<12, using: &random) {
        case 0: throw ServiceError(.connectionLost, "scripted", progress: .headSent)
        case 1: return .answer(503, [:], "ok")
        case 2: return .answer(200, ["Cache-Control": "no-store"], "ok")
        case 3: return .answer(200, ["Cache-Control": "no-cache", "ETag": "\"\(number)\""], "ok")
        case 4: return .answer(200, ["Cache-Control": "max-age=60", "Vary": "X-Tenant"], "ok")
        case 5: return .answer(200, ["Cache-Control": "max-age=1, stale-while-revalidate=9"], "ok")
        default: return .answer(200, cacheable, "ok")
        }
    }

    /// Processes come and go, leases are lost, time passes, callers leave.
    @Test(
        "Every call gets a response, waits at most once, and no lease is left over",
        arguments: 1...40 as ClosedRange<UInt64>
    )
    func interleavings(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let bench = FleetBench(GatedOrigin { _, number in try Self.answer(number, seed: seed) }, processes: 3)
        var calls: [Task<CacheBench.Answer, any Error>] = []
        let ended = CountWatch()
        for step in 0..<60 {
            switch Int.random(in: 0..<16, using: &random) {
            case 0: bench.clock.advance(by: .milliseconds(Int.random(in: 1...3_000, using: &random)))
            case 1: bench.leases.isAvailable.toggle()
            case 2: calls.randomElement(using: &random)?.cancel()
            case 3, 4, 5: bench.origin.open(Int.random(in: 1...3, using: &random))
            case 6: for _ in 0..<20 { await Task.yield() }
            default:
                let process = bench.processes[Int.random(in: 0..<3, using: &random)]
                var request = URLRequest.get("http://origin.example/\(Int.random(in: 0..<3, using: &random))")
                request.setValue("\(step % 2)", forHTTPHeaderField: "X-Tenant")
                let call = process.call(request)
                calls.append(call)
                Task {
                    _ = try? await call.value
                    ended.increment()
                }
            }
        }
        // Time goes on and the origin answers, for as long as anybody waits.
        bench.origin.open(1_000)
        let count = calls.count
        while ended.count < count {
            bench.clock.advance(by: .milliseconds(100))
            for _ in 0..<50 { await Task.yield() }
        }
        for call in calls {
            switch await call.result {
            case .success(let answer):
                // What must be confirmed and cannot be is a 504 of the cache's own (RFC 9111 §5.2.2.2).
                #expect(answer.body == "ok" || answer.status == 504, "seed \(seed)")
            case .failure(let error):
                let isScripted = (error as? ServiceError)?.code == .connectionLost
                #expect(isScripted || error is CancellationError, "seed \(seed): \(error)")
            }
        }
        await bench.waitForQuiet()
        #expect(bench.leases.count == 0, "seed \(seed)")
        // No call sends more than once: there are no retries, and refreshes are few.
        let refreshes = bench.processes.reduce(0) { $0 + $1.cache.statistics.backgroundRevalidations }
        #expect(bench.sends <= count + refreshes, "seed \(seed)")
        for process in bench.processes {
            let waits = process.events.events(.fillAwaited)
            #expect(Set(waits.map(\.callID)).count == waits.count, "seed \(seed): a call waited twice")
            let counted = process.cache.statistics
            let answered = counted.allHits + counted.collapsed + counted.misses + counted.revalidated
            #expect(answered + counted.bypasses == counted.requests, "seed \(seed)")
        }
        #expect(bench.clock.sleeperCount == 0, "seed \(seed)")
    }
}
