// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("The laws find a store that breaks them", .timeLimit(.minutes(20)))
struct BrokenStoreTests {
    private static func factory(_ defect: BrokenStore.Defect) -> StoreFactory {
        StoreFactory("\(defect)") { capacity in
            let inner = try await StoreFactory.disk.make(capacity)
            var reopen: (@Sendable () async throws -> any CacheStore)?
            if let open = inner.reopen { reopen = { BrokenStore(try await open(), defect, isReopened: true) } }
            return StoreSubject(
                BrokenStore(inner.store, defect),
                reopen: reopen,
                heldBytes: inner.heldBytes,
                cleanUp: inner.cleanUp
            )
        }
    }

    @Test("Each broken store is found by the law it breaks", arguments: BrokenStore.Defect.allCases)
    func found(defect: BrokenStore.Defect) async throws {
        let laws = StoreConformance.laws.filter { $0.name.contains(defect.rawValue) }
        let law = try #require(laws.first, "no law is called that")
        #expect(laws.count == 1)
        let findings = await law.findings(of: Self.factory(defect))
        #expect(!findings.isEmpty)
        #expect(findings.allSatisfy { $0.law == law.name && $0.description.contains("seed 1") })
        for finding in findings {
            let sides = finding.message.split(separator: ", not ")
            #expect(sides.count != 2 || !sides[0].hasSuffix(": \(sides[1])"), "\(finding)")
        }
    }

    @Test(
        "A finding shows what differs in entries and in bodies of one length",
        arguments: [
            (.freshensStorageTime, "a/ version ", "stored at 1, new, useless after 50, tags [\"x\"]"),
            (.oldestFirst, "stored at ", "; "), (.flipsByte, "bytes the first that differs is at ", ", not "),
        ] as [(BrokenStore.Defect, String, String)]
    )
    func words(defect: BrokenStore.Defect, first: String, second: String) async throws {
        let law = try #require(StoreConformance.laws.first { $0.name.contains(defect.rawValue) })
        let findings = await law.findings(of: Self.factory(defect))
        #expect(findings.contains { $0.message.contains(first) && $0.message.contains(second) }, "\(findings)")
    }
}
