// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a reader does not do: every one of these throws `.readOnly`, and names the process that could.
extension DiskStoreReader {
    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        throw refusal()
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        throw refusal()
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        throw refusal()
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        throw refusal()
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        throw refusal()
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        throw refusal()
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        throw refusal()
    }

    private func refusal() -> StoreError {
        let root = engine.layout.root
        // Asked anew: the one that was there at the last reading may be gone.
        let next = (holder == nil ? nil : HolderNote.read(engine.layout, engine.files))
            .map { "process \($0) has it open, so it is for that one to change." }
        return StoreError(
            .readOnly,
            "\(root) was opened for reading only; " + (next ?? "open it for writing with DiskStore.")
        )
    }
}
