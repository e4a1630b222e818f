// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

/// Which steps a search may take, and how far it goes.
struct ModelScenario: Sendable, CustomTestStringConvertible {
    struct Steps: OptionSet, Sendable {
        let rawValue: UInt32
        static let freshen = Steps(rawValue: 1 << 0)
        static let remove = Steps(rawValue: 1 << 1)
        static let purgeTag = Steps(rawValue: 1 << 2)
        static let purgePrefix = Steps(rawValue: 1 << 3)
        static let purgeAll = Steps(rawValue: 1 << 4)
        static let hit = Steps(rawValue: 1 << 5)
        static let fail = Steps(rawValue: 1 << 6)
        static let tagged = Steps(rawValue: 1 << 7)
        static let blobs = Steps(rawValue: 1 << 8)
        static let reclaimMain = Steps(rawValue: 1 << 9)
        /// Puts go to the main log, as those of keys that were evicted lately do.
        static let mainPuts = Steps(rawValue: 1 << 10)
        static let pin = Steps(rawValue: 1 << 11)
    }

    var name: String
    var identities: [UInt8]
    var steps: Steps
    var omits: ModelOmissions = []
    var orders: UInt8 = 4
    var pendingWrites = 2
    var depth = 9

    var testDescription: String { name }

    /// Every state one step away, with the name of the step.
    func successors(of state: ModelState) -> [(step: String, state: ModelState)] {
        var all: [(String, ModelState)] = []
        func add(_ name: String, _ step: (inout ModelState) -> Bool) {
            var next = state
            if step(&next) { all.append((name, next)) }
        }
        if state.nextOrder <= orders, state.pendingWrites.count < pendingWrites { begin(state, add) }
        if !state.postponed.isEmpty, state.pendingWrites.count < pendingWrites {
            add("retry a removal") { next in
                next.retryRemoval()
                return true
            }
        }
        for index in state.pendingWrites.indices { advance(state, index, add) }
        if steps.contains(.hit) {
            for identity in identities {
                add("hit \(identity)") { next in
                    guard let row = next.rows[Int(identity)], !row.wasHit else { return false }
                    next.rows[Int(identity)]?.wasHit = true
                    return true
                }
            }
        }
        for main in [false, true] where !main || steps.contains(.reclaimMain) {
            add("reclaim \(main ? "main" : "small")") { $0.beginReclaim(main: main) }
        }
        for index in state.reclaims.indices {
            let number = state.reclaims[index].segment
            if state.canEndReclaim(index) {
                add("unlink segment \(number)") { next in
                    next.endReclaim(index)
                    return true
                }
            } else if !state.isDecided(state.reclaims[index]) {
                add("judge a record of segment \(number)") { next in
                    next.stepReclaim(index)
                    return true
                }
            }
        }
        if !state.segments.isEmpty {
            for landed in 0..<(1 << state.pendingWrites.count) {
                add("crash, landed \(String(landed, radix: 2))") { next in
                    next.crash(landed: landed)
                    return true
                }
            }
        }
        return all
    }

    private func begin(_ state: ModelState, _ add: (String, (inout ModelState) -> Bool) -> Void) {
        for identity in identities {
            for (adverb, needed) in [("", []), (" tagged", .tagged), (" blob", .blobs), (" main", .mainPuts)]
                as [(String, Steps)]
            where steps.contains(needed) {
                add("put \(identity)\(adverb)") { next in
                    next.beginPut(
                        identity,
                        tagged: needed == .tagged,
                        blob: needed == .blobs,
                        inMain: needed == .mainPuts
                    )
                    return true
                }
            }
            if steps.contains(.freshen) { add("freshen \(identity)") { $0.beginFreshening(identity) } }
            if steps.contains(.pin) { add("pin \(identity)") { $0.beginFreshening(identity, pinned: true) } }
        }
        for key in Set(identities.map(ModelPromises.key)).sorted() where steps.contains(.remove) {
            add("remove key \(key)") { next in
                next.beginRemoval(key)
                return true
            }
        }
        for (needed, kind) in [(Steps.purgeTag, ModelRecord.Kind.tagMark), (.purgePrefix, .prefixMark)]
        where steps.contains(needed) {
            add("purge by \(kind)") { next in
                next.beginMark(kind)
                return true
            }
        }
        if steps.contains(.purgeAll), !state.pendingWrites.contains(where: { $0.kind == .purgeAll }) {
            add("purge all") { next in
                next.beginPurgeAll()
                return true
            }
        }
    }

    private func advance(
        _ state: ModelState,
        _ index: Int,
        _ add: (String, (inout ModelState) -> Bool) -> Void
    ) {
        let pendingWrite = state.pendingWrites[index]
        let name = "\(pendingWrite.kind) \(pendingWrite.record.order)"
        if pendingWrite.segment == 0, pendingWrite.kind != .purgeAll {
            return add("place \(name)") { next in
                (next.pendingWrites[index].segment, next.pendingWrites[index].place) = next.reserve(
                    inMain: pendingWrite.kind == .carry
                )
                return true
            }
        }
        add("finish \(name)") { next in
            next.finish(index)
            return true
        }
        guard steps.contains(.fail) else { return }
        switch pendingWrite.kind {
        case .put, .freshen, .removal, .mark: break
        case .carry, .evictionTombstone, .purgeAll: return
        }
        for landed in [false, true] {
            add("fail \(name), landed: \(landed)") { next in
                next.fail(index, landed: landed)
                return true
            }
        }
    }
}
