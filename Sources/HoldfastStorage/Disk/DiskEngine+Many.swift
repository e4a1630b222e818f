// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Changes to many keys at once.
extension DiskEngine {
    /// How far a purge has come.
    enum PurgeStep: Sendable {
        case removed(Int)
        case ask(PurgeJudge.Unknown)
    }

    /// Changes: removes what a purge takes, unless its predicate has to be asked first.
    func purge(_ judge: PurgeJudge, now: StoreInstant) throws(StoreError) -> PurgeStep {
        let (unknown, taken) = try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            let unknown = judge.unknown(in: state.index, state.writers, now: now)
            var taken: [StoreKey: DiskState.Taken] = [:]
            guard unknown.isEmpty else { return (unknown, taken) }
            state.writers.supersede(ids: judge.superseded(in: state.writers))
            for key in state.index.keys {
                let part = state.take(key) { judge.takes($0) }
                if part.entries > 0 { taken[key] = part }
            }
            state.counts.entriesRemoved &+= taken.values.reduce(0) { $0 + $1.entries }
            return (unknown, taken)
        }
        if !unknown.isEmpty { return .ask(unknown) }
        var failure: StoreError?
        for (key, part) in taken {
            // One key that fails must not save the others.
            do { try finish(part, of: key) } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
        return .removed(taken.values.reduce(0) { $0 + $1.entries })
    }

    /// Changes: evicts until the bytes are within the capacity, pinned keys last.
    func shrink() {
        while let taken = state.withLock({ $0.overflow() }) {
            remove(taken.files)
        }
    }
}

extension DiskState {
    /// What has to leave because the capacity is exceeded; nil when it is not, or nothing is left that could leave.
    mutating func overflow() -> Taken? {
        let isPinnedTooMuch = index.pinnedCost > counts.capacity / 2
        guard used > counts.capacity || isPinnedTooMuch else { return nil }
        let pinned = index.allRecords.first { $0.entry.isPinned }?.entry.key
        guard let key = isPinnedTooMuch ? pinned : index.victim(now: now) ?? pinned else { return nil }
        let taken = take(key) { _ in true }
        counts.entriesEvicted &+= taken.entries
        return taken
    }
}
