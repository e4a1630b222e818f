// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite("The rules of recovery hold in every short history")
struct RecoveryModelTests {
    /// How much deeper to go than a test run has time for.
    private static let extra = getenv("RECOVERY_MODEL_EXTRA").flatMap { Int(String(cString: $0)) } ?? 0

    static let scenarios: [ModelScenario] = [
        ModelScenario(
            name: "one identity, all that fails",
            identities: [2],
            steps: [.freshen, .remove, .fail],
            depth: 6
        ),
        ModelScenario(name: "eviction", identities: [2], steps: [.hit, .reclaimMain, .remove], depth: 11),
        ModelScenario(
            name: "both logs",
            identities: [2],
            steps: [.reclaimMain, .mainPuts, .fail],
            orders: 3,
            depth: 12
        ),
        ModelScenario(
            name: "killed in both logs",
            identities: [2],
            steps: [.reclaimMain, .mainPuts, .remove],
            depth: 9
        ),
        ModelScenario(
            name: "failures in both logs",
            identities: [2],
            steps: [.reclaimMain, .mainPuts, .remove, .fail],
            orders: 3,
            depth: 8
        ),
        ModelScenario(name: "pins", identities: [2], steps: [.pin, .freshen, .reclaimMain, .remove], depth: 8),
        ModelScenario(name: "blobs", identities: [2], steps: [.freshen, .blobs, .fail, .remove], depth: 6),
        ModelScenario(name: "blobs after reopening", identities: [0, 2], steps: [.blobs], orders: 3, depth: 9),
        ModelScenario(name: "tags", identities: [2], steps: [.tagged, .purgeTag, .hit, .freshen], depth: 7),
        ModelScenario(name: "variants", identities: [0, 1], steps: [.remove, .purgePrefix, .hit], depth: 6),
        ModelScenario(name: "purge all", identities: [0, 2], steps: [.purgeAll, .remove], depth: 6),
    ]

    /// All steps at once, too many for a test run: searched only where more time is given.
    private static let everything = ModelScenario(
        name: "everything",
        identities: [0, 1, 2],
        steps: [
            .freshen, .remove, .purgeTag, .purgePrefix, .purgeAll, .hit, .fail, .tagged, .blobs, .reclaimMain,
            .mainPuts,
            .pin,
        ],
        orders: 6,
        pendingWrites: 3,
        depth: 2
    )

    @Test("No history breaks a promise", arguments: scenarios + (extra > 0 ? [everything] : []))
    func rulesHold(_ scenario: ModelScenario) {
        var scenario = scenario
        scenario.depth += Self.extra
        let outcome = ModelSearch(scenario: scenario).run()
        print("\(scenario.name): \(outcome.states) states, depth \(outcome.depth), all: \(outcome.isExhausted)")
        #expect(outcome.counterexample == nil)
        #expect(outcome.states > 1_000)
    }

    @Test("The fold of the store agrees with the model")
    func foldAgrees() {
        let identities: [UInt8] = [0, 1, 2]
        let steps: ModelScenario.Steps = [.hit, .reclaimMain, .remove, .purgeTag]
        let scenario = ModelScenario(name: "fold", identities: identities, steps: steps, depth: 9)
        var count = 0
        var search = ModelSearch(scenario: scenario, limit: 12_000)
        search.onReopened = { state in
            count += 1
            if count.isMultiple(of: 8) { #expect(state.folded == state.reopenedRows) }
        }
        #expect(search.run().counterexample == nil)
        #expect(count > 1_000)
    }

    static let omissions: [(rule: String, omits: ModelOmissions, identities: [UInt8], steps: ModelScenario.Steps)] = [
        ("horizon", .horizon, [2], [.reclaimMain, .remove, .hit]),
        ("a tombstone for a row that shadows", .shadowTombstone, [2], [.reclaimMain, .hit]),
        ("an eviction's tombstone keeps the order", .evictionKeepsOrder, [2], [.reclaimMain]),
        ("shadows counts flights", .flightShadows, [2], [.reclaimMain, .mainPuts]),
        ("superseded while written", .supersededWrites, [2], [.reclaimMain, .remove]),
        ("removal without a row", .removalWithoutRow, [2], [.reclaimMain, .remove]),
        ("written before unlinking", .writeBeforeUnlink, [2], [.reclaimMain, .hit, .remove]),
        ("order and place in one step", .placeWithOrder, [2], [.reclaimMain, .remove, .hit]),
        ("copies placed under the lock", .carryUnderLock, [2], [.reclaimMain, .hit, .remove]),
        ("one reclaim at a time", .serialReclaim, [2], [.reclaimMain, .mainPuts]),
        ("unique blob numbers", [.blobNumbers, .blobAfterSegment], [0, 2], [.blobs]),
        ("a record left by a failed write keeps its blob", .uncertainBlob, [2], [.blobs, .fail]),
        ("freshening alone", .freshenAlone, [2], [.blobs, .freshen]),
        ("epoch first", .epochFirst, [0], [.purgeAll]),
        ("named blobs stay", .namedBlobs, [2], [.blobs, .freshen]),
        ("removals written before unlinking", .removalBeforeUnlink, [2], [.reclaimMain, .mainPuts, .remove]),
        ("removals written in the end", .postponedTombstones, [2], [.reclaimMain, .mainPuts, .remove, .fail]),
        ("copies shadow", .copyShadows, [2], [.reclaimMain, .hit, .remove]),
    ]

    @Test("Without any one rule the search finds a counterexample", arguments: omissions.indices)
    func omissionIsFound(_ index: Int) {
        let (rule, omits, identities, steps) = Self.omissions[index]
        let scenario = ModelScenario(name: rule, identities: identities, steps: steps, omits: omits, depth: 16)
        let outcome = ModelSearch(scenario: scenario, limit: 200_000).run()
        print("without \(rule), \(outcome.states) states: \(outcome.counterexample ?? ["none"])")
        #expect(outcome.counterexample != nil, "without the rule of \(rule)")
    }
}
