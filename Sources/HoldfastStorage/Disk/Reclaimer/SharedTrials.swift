// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The trials that find the small log's share: every look-up asks whether they see its key, which costs no lock, and few are seen.
///
/// They begin once the store is half full; nothing is reclaimed before.
final class SharedTrials: Sendable {
    private struct State {
        var trials: WindowTrials
        /// The entries that the store holds when it is full.
        var expected = 0
        /// Requests seen until ``expected`` is out of date.
        var life = 0
        /// Half-lives since the start: the clocks of shards run apart.
        var time = 0.0
    }

    private let state: Mutex<State>
    /// ``WindowTrials/rarity``; 32 before they begin.
    private let rarity = Atomic<UInt32>(32)

    init(seed: UInt64) {
        state = Mutex(State(trials: WindowTrials(beta: CarryJudge.beta, seed: seed)))
    }

    /// See ``WindowTrials/share``.
    var share: Double { state.withLock { $0.trials.share } }

    /// Begins, if that was not done before.
    func begin() {
        _ = rarity.compareExchange(expected: 32, desired: 0, ordering: .relaxed)
    }

    /// Whether the key with this hash is seen.
    func samples(_ hash: UInt32) -> Bool {
        WindowTrials.samples(hash, rarity: rarity.load(ordering: .relaxed))
    }

    /// Whether it is time for ``expect(_:)``.
    var wantsExpectation: Bool { state.withLock { $0.life <= 0 } }

    /// Notes how many entries the store holds when it is full.
    func expect(_ entries: Int) {
        state.withLock { ($0.expected, $0.life) = (entries, 16) }
    }

    /// Plays a request of a key that is seen; see ``WindowTrials/note(_:size:weight:now:capacity:expected:)``.
    func note(_ hash: UInt32, size: Int, weight: Int32, capacity: Int) {
        state.withLock { state in
            state.life -= 1
            let stands = Double(UInt64(1) << UInt64(state.trials.rarity))
            state.time += stands / Double(KeyFrequencies.halfLife * max(1, state.expected))
            state.trials.note(
                hash,
                size: size,
                weight: weight,
                now: UInt32(truncatingIfNeeded: Int(state.time * Double(DensityWeight.unit))),
                capacity: capacity,
                expected: state.expected
            )
            rarity.store(state.trials.rarity, ordering: .relaxed)
        }
    }
}
