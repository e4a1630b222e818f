// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Every store passes the store conformance suite", .timeLimit(.minutes(20)))
struct StoreConformanceTests {
    @Test("Law", arguments: StoreFactory.all, StoreConformance.laws)
    func law(factory: StoreFactory, law: StoreConformance.Law) async {
        let findings = await law.findings(of: factory, seed: 1)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("Every law has a unique name")
    func names() {
        #expect(Set(StoreConformance.laws.map(\.name)).count == StoreConformance.laws.count)
        #expect(StoreConformance.laws.contains { $0.isOfRestarts })
    }

    @Test("Running all laws at once gives the same results as one by one")
    func all() async {
        let findings = await StoreConformance.findings(of: .memory, seeds: [3])
        #expect(findings.isEmpty, "\(findings)")
    }
}

extension StoreFactory {
    static let memory = StoreFactory("MemoryStore") { StoreSubject(MemoryStore(capacity: $0)) }

    static let disk = StoreFactory("DiskStore") { capacity in
        let directory = try TemporaryDirectory()
        return StoreSubject(
            try await DiskStore.open(directory: directory.path, capacity: capacity, now: .at(0)),
            reopen: {
                try await DiskStore.open(directory: directory.path, capacity: capacity, now: .at(0))
            },
            heldBytes: { directory.blockBytes() },
            cleanUp: { directory.remove() }
        )
    }

    static let all = [
        memory, disk, .tiered(over: memory), .tiered(over: disk), .settled(over: memory),
        .settled(over: disk),
    ]
}
