// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Changes go to the lower tier; the upper one forgets what they touch before anyone is asked to believe it again.
extension TieredStore {
    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let bytes = await heldBody(of: entry)?.bytesInMemory
        let changed = try await change(entry.key) { () async throws(StoreError) in
            try await lower.replaceDescription(of: entry, with: description, now: now)
        }
        // The body is the same, so that it need not be earned anew.
        if let changed, let bytes { startPromotion(of: changed, bytes) }
        return changed
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try await change(entry.key) { () async throws(StoreError) in try await lower.remove(entry) }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        try await change(key) { () async throws(StoreError) in try await lower.invalidate(key) }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        let bytes = await heldBody(of: entry)?.bytesInMemory
        let isDone = try await change(entry.key) { () async throws(StoreError) in
            try await lower.setPinned(pinned, entry)
        }
        if let bytes { startPromotion(of: entry, bytes) }
        return isDone
    }

    /// Purges the lower tier and then the upper one; the count is the lower tier's.
    ///
    /// An entry that was evicted below and is still there above is shown to a predicate as well.
    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        noteChange(of: nil)
        let outcome: Result<Int?, StoreError>
        if case .matching(let predicate) = selection.form {
            let verdicts = PurgeVerdicts(predicate)
            await purgeAbove(verdicts.noting, now: now)
            outcome = await purgeBelow(verdicts.recording, now: now)
            await purgeAbove(verdicts.applying, now: now)
        } else {
            outcome = await purgeBelow(selection, now: now)
            await purgeAbove(selection, now: now)
        }
        noteChanged(nil)
        return try outcome.get()
    }

    /// Runs a change of one key below, and has the upper tier forget the key whatever came of it.
    @discardableResult
    func change<Outcome>(
        _ key: StoreKey,
        _ step: () async throws(StoreError) -> Outcome
    ) async throws(StoreError) -> Outcome {
        noteChange(of: key)
        let outcome: Result<Outcome, StoreError>
        do throws(StoreError) {
            outcome = .success(try await step())
        } catch {
            outcome = .failure(error)
        }
        await forget(key)
        noteChanged(key)
        return try outcome.get()
    }

    /// Takes a key out of the upper tier, the copy of it under way included.
    func forget(_ key: StoreKey) async {
        do throws(StoreError) {
            try await upper.invalidate(key)
        } catch {
            await forgetAll()
        }
    }

    private func purgeBelow(_ selection: PurgeSelection, now: StoreInstant) async -> Result<Int?, StoreError> {
        do throws(StoreError) {
            return .success(try await lower.purge(selection, now: now))
        } catch {
            return .failure(error)
        }
    }

    private func purgeAbove(_ selection: PurgeSelection, now: StoreInstant) async {
        do throws(StoreError) {
            try await upper.purge(selection, now: now)
        } catch {
            await forgetAll()
        }
    }

    /// The upper tier could not be made to forget something, so nothing it holds is believed again.
    func forgetAll() async {
        generation.add(1, ordering: .sequentiallyConsistent)
        _ = try? await upper.purge(.all, now: now)
    }
}

/// What a purge's predicate said of the entries that lie in both tiers, so that it is asked once for each.
private final class PurgeVerdicts: Sendable {
    private let predicate: @Sendable (StoredEntry) -> Bool
    /// Of the versions above: what the predicate said, nil where it was not asked.
    private let verdicts = Mutex<[StoredEntry.Version: Bool?]>([:])

    init(_ predicate: @escaping @Sendable (StoredEntry) -> Bool) {
        self.predicate = predicate
    }

    /// Notes what lies above, and takes nothing.
    var noting: PurgeSelection {
        .matching { [self] upper in
            if let promoted = PromotedEntry(upper) {
                verdicts.withLock { _ = $0.updateValue(nil, forKey: promoted.entry.version) }
            }
            return false
        }
    }

    /// Asks below, and records what concerns the entries above.
    var recording: PurgeSelection {
        .matching { [self] entry in
            let takes = predicate(entry)
            verdicts.withLock { verdicts in
                if verdicts[entry.version] != nil { verdicts[entry.version] = .some(takes) }
            }
            return takes
        }
    }

    /// Takes above what was taken below, and asks about the rest.
    var applying: PurgeSelection {
        .matching { [self] upper in
            guard let entry = PromotedEntry(upper)?.entry else { return true }
            if case .some(.some(let takes)) = verdicts.withLock({ $0[entry.version] }) { return takes }
            return predicate(entry)
        }
    }
}
