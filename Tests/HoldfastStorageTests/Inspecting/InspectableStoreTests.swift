// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@Suite("Verifying and compacting")
struct InspectableStoreTests {
    @Test("A store in memory counts its entries, finds no damage and has nothing to free")
    func memory() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        try await store.put("a", Array(repeating: 1, count: 100))
        try await store.put("a", variant: "v", Array(repeating: 2, count: 20))
        try await store.put("b", Array(repeating: 3, count: 3))
        let steps = Mutex<[VerificationProgress]>([])
        let report = try await store.verify { step in steps.withLock { $0.append(step) } }
        #expect(report.entriesChecked == 3)
        #expect(report.bodyBytesChecked == 123)
        #expect(report.isClean)
        #expect(steps.withLock { $0.last?.fraction } == 1)
        #expect(steps.withLock { $0.last?.entries } == 3)
        #expect(try await store.compact().bytesFreed == 0)
        #expect(try await store.compact().bytesAfter == store.statistics.bytesUsed)
        #expect(store.statistics.lookups == 0)
    }

    @Test("A closed store is neither verified nor compacted")
    func closed() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        await store.close()
        await #expect(throws: StoreError.self) { try await store.verify { _ in } }
        await #expect(throws: StoreError.self) { try await store.compact() }
    }

    @Test(
        "Progress is a fraction of the whole, whatever the numbers",
        arguments: [(0, 0, 1.0), (1, 4, 0.25), (4, 4, 1), (9, 4, 1), (-1, 4, 0), (.max, .max, 1), (1, -1, 1)]
    )
    func progress(_ read: Int, _ total: Int, _ fraction: Double) {
        #expect(VerificationProgress(entries: 0, bytesRead: read, bytesTotal: total).fraction == fraction)
    }

    @Test("Findings are kept up to a bound, and a single one makes the report unclean")
    func findings() {
        var report = VerificationReport()
        #expect(report.isClean)
        for number in 0..<VerificationReport.maximumDamage + 5 {
            report.note(.init(key: nil, message: "segment \(number)"))
        }
        #expect(report.damage.count == VerificationReport.maximumDamage)
        #expect(report.damage.first?.message == "segment 0")
        #expect(!report.isClean)
        #expect(CompactionReport(bytesBefore: .min, bytesAfter: .max).bytesFreed == 0)
        #expect(CompactionReport(bytesBefore: 7, bytesAfter: 3).bytesFreed == 4)
    }
}
