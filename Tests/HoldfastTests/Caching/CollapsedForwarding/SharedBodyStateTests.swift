// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("The positions of one body's readers", .timeLimit(.minutes(20)))
struct SharedBodyStateTests {
    /// What each reader has got so far, against all that came: as simple as can be.
    private struct Model {
        var all: [UInt8] = []
        var got: [Int: [UInt8]] = [:]
        var reserved = 0
    }

    @Test("Any interleaving: every reader that stays gets exactly the body's bytes", arguments: 0..<300)
    func interleavings(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...40, using: &random)
        var state = SharedBodyState(limit: limit)
        var model = Model(reserved: Int.random(in: 0...3, using: &random))
        state.open(readers: model.reserved, goesOn: Bool.random(using: &random))
        var canFollow = Bool.random(using: &random)
        /// Readers whose bytes are in the entry alone when it is lost cannot go on.
        var lost: Set<Int> = []
        for _ in 0..<200 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                if case .pull = state.demand(canFollow: canFollow), state.ending == nil {
                    let length = Int.random(in: 1...9, using: &random)
                    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: model.all.count + $0) }
                    model.all += bytes
                    state.add(ByteChunk(bytes), canFollow: canFollow)
                    if !canFollow { #expect(state.end - state.start <= limit + 9) }
                }
            case 4:
                let isAtHand = state.start == 0 || canFollow
                let reserves = state.reserve(canFollow: canFollow)
                #expect(reserves == (isAtHand && !state.isStopped), "seed \(seed)")
                if reserves { model.reserved += 1 }
            case 5 where model.reserved > 0:
                model.reserved -= 1
                if state.start > 0, !canFollow {
                    state.release()
                } else {
                    model.got[state.addReader()] = []
                }
            case 6 where model.reserved > 0:
                model.reserved -= 1
                state.release()
            case 7:
                if let reader = model.got.keys.sorted().randomElement(using: &random),
                    Int.random(in: 0..<4, using: &random) == 0
                {
                    model.got[reader] = nil
                    state.leave(reader)
                }
            case 8 where Int.random(in: 0..<30, using: &random) == 0:
                canFollow = false
                lost = Set(model.got.filter { $0.value.count < state.start }.keys)
                for reader in lost { state.leave(reader) }
                for reader in lost { model.got[reader] = nil }
            default:
                guard let reader = model.got.keys.sorted().randomElement(using: &random) else { continue }
                read(reader, &state, &model, seed)
            }
            #expect(state.hasReaders == (model.reserved > 0 || !model.got.isEmpty))
        }
        state.end(.success(()))
        for reader in model.got.keys.sorted() {
            while read(reader, &state, &model, seed) {}
            #expect(model.got[reader] == model.all, "seed \(seed)")
            guard case .ended(.success) = state.step(reader) else {
                Issue.record("seed \(seed): reader \(reader) found no end")
                return
            }
        }
    }

    @discardableResult
    private func read(_ reader: Int, _ state: inout SharedBodyState, _ model: inout Model, _ seed: UInt64) -> Bool {
        switch state.step(reader) {
        case .chunk(let chunk):
            model.got[reader]? += chunk.array
            return true
        case .behind(let offset, let count):
            #expect(offset == model.got[reader]?.count, "seed \(seed)")
            let part = min(count, 3)
            model.got[reader]? += model.all[offset..<(offset + part)]
            state.advance(reader, by: part)
            return true
        case .wait:
            #expect(model.got[reader] == model.all, "seed \(seed)")
            let wants = state.wants(reader)
            #expect(wants)
            return false
        case .ended, .expelled:
            return false
        }
    }

    @Test("What the transfer does next")
    func demand() {
        var state = SharedBodyState(limit: 2)
        state.open(readers: 2, goesOn: false)
        expect(state.demand(canFollow: false), .rest)
        let (slow, fast) = (state.addReader(), state.addReader())
        _ = state.wants(fast)
        expect(state.demand(canFollow: false), .pull)
        state.add(ByteChunk([1, 2]), canFollow: false)
        expect(state.demand(canFollow: false), .rest)
        _ = state.step(fast)
        _ = state.wants(fast)
        expect(state.demand(canFollow: false), .blocked)
        expect(state.demand(canFollow: true), .pull)
        state.expel([fast, slow], at: 0)
        #expect(state.slowest?.readers == [fast])
        if case .expelled = state.step(slow) {} else { Issue.record("the slow reader was not expelled") }
        state.leave(fast)
        state.abandon(goesOn: true)
        expect(state.demand(canFollow: true), .pull)
        expect(state.demand(canFollow: false), .stop)
        expect(state.demand(canFollow: true), .stop)
    }

    @Test("A reserved reader keeps the beginning of the body; only readers that stand still are given up")
    func seats() {
        var state = SharedBodyState(limit: 2)
        state.open(readers: 2, goesOn: false)
        let first = state.addReader()
        _ = state.wants(first)
        state.add(ByteChunk([1, 2]), canFollow: false)
        _ = state.step(first)
        _ = state.wants(first)
        expect(state.demand(canFollow: false), .blocked)
        let stalled = state.addReader()
        expect(state.demand(canFollow: false), .blocked)
        #expect(state.slowest?.readers == [stalled])
        let reserves = state.reserve(canFollow: false)
        #expect(reserves)
        let newcomer = state.addReader()
        state.expel([stalled], at: 0)
        #expect(state.slowest?.readers == [newcomer])
    }

    private func expect(_ demand: SharedBodyState.Demand, _ expected: SharedBodyState.Demand) {
        #expect(demand == expected)
    }
}
