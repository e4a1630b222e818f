// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

@Suite("Verifying and compacting a cache", .timeLimit(.minutes(20)))
struct VerifyingTests {
    @Test("The store does the work and reports progress")
    func passedOn() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: "abc")])
        try await bench.load()
        let fractions = Mutex<[Double]>([])
        let report = try await bench.cache.verify { step in fractions.withLock { $0.append(step.fraction) } }
        #expect(report.isClean)
        #expect(report.entriesChecked == 1)
        #expect(report.bodyBytesChecked == 3)
        #expect(fractions.withLock { $0.last } == 1)
        #expect(try await bench.cache.verify().entriesChecked == 1)
        #expect(try await bench.cache.compact().bytesAfter == bench.cache.store.statistics.bytesUsed)
    }

    @Test("A store without the operation is named in the error")
    func unsupported() async throws {
        let cache = HTTPCache(store: FaultyStore())
        for error in [
            await #expect(throws: StoreError.self) { _ = try await cache.verify() },
            await #expect(throws: StoreError.self) { try await cache.compact() },
        ] {
            #expect(error?.code == .badConfiguration)
            #expect(error?.message.contains("FaultyStore") == true)
        }
    }

    @Test("Damage names the URI where the key is known, whatever the key's bytes are")
    func damage() throws {
        let target = try TargetURI("http://origin.example/a?b=1")
        let key = CacheKey(partition: "", method: .get, target: target)
        let known = VerificationReport.Damage(key: StoreKey(key.framed), message: "")
        #expect(known.target?.canonical == target.canonical)
        #expect(VerificationReport.Damage(key: nil, message: "").target == nil)
        for count in 0..<key.framed.count {
            let cut = VerificationReport.Damage(key: StoreKey(Array(key.framed.prefix(count))), message: "")
            #expect(cut.target == nil || cut.target?.canonical == target.canonical)
        }
    }
}
