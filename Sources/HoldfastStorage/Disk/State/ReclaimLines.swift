// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The line that the last reclaim drew, for those who write, and what the next one goes by.
final class ReclaimLines: Sendable {
    private struct State {
        var share = SmallLogShare()
        var turn = 0
        var random: PolicyRandom
    }

    private let promotion = Atomic<Int32>(.max)
    private let state: Mutex<State>

    init(seed: UInt64) {
        state = Mutex(State(random: PolicyRandom(seed: seed)))
    }

    /// Draws the line anew.
    func draw(_ sample: WorthSample) {
        promotion.store(sample.promotion, ordering: .relaxed)
    }

    /// Which log a new entry enters whose key was asked for so often.
    func log(ofNew frequency: Int, bytes: Int) -> LogKind {
        let worth = EntryWorth.of(frequency: frequency, wasUsed: false, bytes: bytes)
        return ReclaimJudge.log(ofNew: worth, promotion: promotion.load(ordering: .relaxed))
    }

    /// What a reclaim that is about to begin is judged by. For the thread of changes.
    func judge(index: ShardedIndex, hits: Int, misses: Int) -> ReclaimJudge {
        // Two reclaims never run at once, so what is drawn outside of the lock is not torn.
        var random = state.withLock { $0.random }
        let draws = index.draws(using: &random)
        let entries = index.count
        let sample = WorthSample(draws, entries: entries)
        draw(sample)
        return state.withLock { state in
            state.random = random
            state.share.update(requests: hits &+ misses, hits: hits, entries: entries)
            return ReclaimJudge(sample: sample, share: state.share.value, turn: state.turn)
        }
    }

    /// Notes that a segment of the main log is reclaimed.
    func noteTurn() {
        state.withLock { $0.turn &+= 1 }
    }
}
