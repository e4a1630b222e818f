// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

/// A store that hands everything on to another one, but for what it gets wrong.
final class BrokenStore: CacheStore {
    /// What is wrong, and a word from the name of a law that must find it.
    enum Defect: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case flipsByte = "Bodies of every length"
        case peeksOtherBytes = "returned without suspending"
        case peeksWhatIsGone = "never to one that is gone"
        case forgetsTags = "found with its description"
        case oldestFirst = "newest first"
        case keepsThreeVariants = "At least 8 variants"
        case freshensStorageTime = "freshened entry keeps"
        case invalidatesOneVariant = "removes all variants"
        case purgesByPrefixOfOwn = "A purge removes what its selection names"
        case countsPurgesWrong = "removes single variants"
        case losesPinWhenReplaced = "A pin outlives"
        case pinsEverything = "take at most half"
        case pinsNothing = "Pinned entries stay"
        case commitsAbandoned = "An abandoned or dropped writer"
        case commitsSuperseded = "does not appear"
        case stopsPurges = "although the task that makes it is cancelled"
        case hidesLength = "each at its own pace"
        case listsTwice = "A list shows every entry once"
        case listsPageAgain = "is listed once while others come and go"
        case countsListsAsLookups = "on pages of any size, and is not counted"
        case removesByVariant = "A removal affects one version"
        case answersWhenClosed = "A closed store refuses"
        case forgetsPinsAtRestart = "Entries survive a restart"
        case changesSecret = "The secret survives"
        case changesSecretAtEachAccess = "A committed entry is found"
        case pinsNewerVersion = "A freshened entry keeps its body"
        case removesWhatIsBeingWritten = "one version of one variant"
        case ignoresEmptyPrefix = "and spares entries written afterward"
        case purgesEqualTags = "what its selection names, returns how many"
        case invalidatesOneByOne = "An invalidation is atomic"
        case growsWithoutRoom = "The capacity is never exceeded"
        case endsFollowersWithEntry = "A follower reads on although"

        var testDescription: String { "\(self)" }
    }

    let inner: any CacheStore
    let defect: Defect
    private let isReopened: Bool
    private let isClosed = Atomic(false)
    private let extraLookups = Atomic(0)
    private let extraBytes = Atomic(0)
    /// The bodies that were opened, whatever became of their entries.
    private let opened = Mutex<[StoredEntry.Version: [UInt8]]>([:])

    init(_ inner: any CacheStore, _ defect: Defect, isReopened: Bool = false) {
        self.inner = inner
        self.defect = defect
        self.isReopened = isReopened
    }

    var secret: [UInt8] {
        if defect == .changesSecretAtEachAccess { return (0..<32).map { _ in UInt8.random(in: .min ... .max) } }
        return inner.secret + (defect == .changesSecret && isReopened ? [1] : [])
    }

    var statistics: StoreStatistics {
        var statistics = inner.statistics
        statistics.lookups += extraLookups.load(ordering: .relaxed)
        statistics.bytesUsed += extraBytes.load(ordering: .relaxed)
        return statistics
    }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        if defect == .answersWhenClosed, isClosed.load(ordering: .relaxed) { return [] }
        let found = try await inner.entries(for: key, now: now)
        switch defect {
        case .oldestFirst: return found.reversed()
        case .keepsThreeVariants: return Array(found.prefix(3))
        case .forgetsPinsAtRestart where isReopened: return found.map { $0.with(isPinned: false) }
        default: return found
        }
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        let body = try await inner.body(of: entry)
        if defect == .peeksOtherBytes || defect == .peeksWhatIsGone {
            var bytes: [UInt8] = []
            while bytes.count < entry.bodyLength {
                bytes += try await body.read(from: bytes.count, upTo: entry.bodyLength).array
            }
            opened.withLock { $0[entry.version] = bytes }
        }
        return defect == .flipsByte && entry.bodyLength > 100_000 ? FlippedBody(inner: body) : body
    }

    func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard let bytes = opened.withLock({ $0[entry.version] }) else { return nil }
        return ByteChunk(defect == .peeksOtherBytes ? Array(bytes.dropLast()) : bytes)
    }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        var description = description
        if defect == .forgetsTags { description.tags = [] }
        if defect == .commitsSuperseded || defect == .commitsAbandoned
            || defect == .losesPinWhenReplaced
            || defect == .hidesLength || defect == .endsFollowersWithEntry
        {
            return BrokenWriter(self, key, variant, description)
        }
        return try await inner.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
    }

    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        if defect == .growsWithoutRoom {
            extraBytes.add(description.metadata.count - entry.description.metadata.count, ordering: .relaxed)
            return try await inner.replaceDescription(of: entry, with: entry.description, now: now)
        }
        let changed = try await inner.replaceDescription(of: entry, with: description, now: now)
        return defect == .freshensStorageTime ? changed?.with(storedAt: now) : changed
    }

    func remove(_ entry: StoredEntry) async throws(StoreError) {
        if defect == .removesWhatIsBeingWritten {
            try await inner.purge(.matching { $0.key == entry.key && $0.version == .beingWritten }, now: .at(0))
        }
        guard defect == .removesByVariant else { return try await inner.remove(entry) }
        for found in try await inner.entries(for: entry.key, now: .at(0))
        where found.variant == entry.variant {
            try await inner.remove(found)
        }
    }

    func invalidate(_ key: StoreKey) async throws(StoreError) {
        if defect == .invalidatesOneByOne {
            for entry in try await inner.entries(for: key, now: .at(0)) {
                try await inner.remove(entry)
                await Task.yield()
            }
            return
        }
        guard defect == .invalidatesOneVariant else { return try await inner.invalidate(key) }
        if let first = try await inner.entries(for: key, now: .at(0)).first {
            try await inner.remove(first)
        }
    }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        if defect == .stopsPurges, Task.isCancelled { throw StoreError(.cancelled, "stopped") }
        if defect == .purgesByPrefixOfOwn, case .keyPrefix(let prefix) = selection.form {
            return try await inner.purge(.keyPrefix(Array(prefix.dropLast(2))), now: now)
        }
        if defect == .ignoresEmptyPrefix, case .keyPrefix(let prefix) = selection.form, prefix.isEmpty { return 0 }
        if defect == .purgesEqualTags, case .tag(let tag) = selection.form {
            return try await inner.purge(.matching { $0.description.tags.contains(tag) }, now: now)
        }
        let count = try await inner.purge(selection, now: now)
        return defect == .countsPurgesWrong ? (count ?? 0) + 7 : count
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        if defect == .pinsNothing { return false }
        if defect == .pinsNewerVersion,
            let newer = try await inner.entries(for: entry.key, now: .at(0)).first(where: {
                $0.variant == entry.variant
            })
        {
            return try await inner.setPinned(pinned, newer)
        }
        let isDone = try await inner.setPinned(pinned, entry)
        return isDone || defect == .pinsEverything
    }

    func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError)
        -> StorePage
    {
        if defect == .countsListsAsLookups { extraLookups.add(1, ordering: .relaxed) }
        let page = try await inner.list(after: cursor, limit: limit, now: now)
        switch defect {
        case .listsTwice: return StorePage(listed: page.listed + page.listed.suffix(1), next: page.next)
        case .listsPageAgain where cursor == nil:
            let again = try await inner.list(after: nil, limit: 1, now: now)
            return StorePage(listed: page.listed, next: page.next == nil ? nil : again.next)
        default: return page
        }
    }

    func close() async {
        isClosed.store(true, ordering: .relaxed)
        await inner.close()
    }
}

/// A writer that holds the body back until the commit, and gets one thing wrong.
private final class BrokenWriter: EntryWriter {
    private let store: BrokenStore
    private let key: StoreKey
    private let variant: StoreKey
    private let description: EntryDescription
    private let body = Mutex<[UInt8]>([])
    private let committed = Mutex<StoredEntry?>(nil)
    private let hasEnded = Atomic(false)
    private let shadow: Mutex<(any EntryWriter)?>

    init(_ store: BrokenStore, _ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription) {
        self.store = store
        self.key = key
        self.variant = variant
        self.description = description
        shadow = Mutex(nil)
    }

    private func ensureOpen() throws(StoreError) {
        if hasEnded.load(ordering: .relaxed) { throw StoreError(.abandoned, "ended") }
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        try ensureOpen()
        body.withLock { bytes.append(to: &$0) }
    }

    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError)
        -> StoredEntry
    {
        try ensureOpen()
        hasEnded.store(true, ordering: .relaxed)
        if store.defect == .losesPinWhenReplaced {
            for old in try await store.inner.entries(for: key, now: now) where old.variant == variant {
                try await store.inner.setPinned(false, old)
            }
        }
        let writer = try await store.inner.write(
            key,
            variant: variant,
            description: description ?? self.description,
            expectedLength: nil,
            now: now
        )
        try await writer.append(ByteChunk(body.withLock { $0 }))
        let entry = try await writer.commit(nil, now: now)
        committed.withLock { $0 = entry }
        return entry
    }

    func abandon() {
        if hasEnded.exchange(true, ordering: .relaxed) || store.defect != .commitsAbandoned { return }
        let (store, key, variant, description) = (store, key, variant, description)
        Task {
            _ = try? await store.inner.write(
                key,
                variant: variant,
                description: description,
                expectedLength: nil,
                now: .at(0)
            ).commit(nil, now: .at(0))
        }
    }

    /// Shows what is there, as if it were whole.
    func follow() -> any StoredBody {
        if store.defect == .endsFollowersWithEntry { return DependentBody(writer: self) }
        let bytes = body.withLock { $0 }
        return EarlyBody(bytes: ByteChunk(bytes))
    }

    /// What there is to read: the entry's body once there is an entry.
    func current() async throws(StoreError) -> any StoredBody {
        if let entry = committed.withLock({ $0 }) { return try await store.inner.body(of: entry) }
        return EarlyBody(bytes: ByteChunk(body.withLock { $0 }))
    }
}

private struct DependentBody: StoredBody {
    let writer: BrokenWriter
    var length: Int? { nil }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        try await writer.current().read(from: offset, upTo: count)
    }
}

private struct EarlyBody: StoredBody {
    let bytes: ByteChunk
    var length: Int? { bytes.count }
    var bytesInMemory: ByteChunk? { bytes }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let start = min(max(0, offset), bytes.count)
        return bytes[start..<(start + min(max(0, count), bytes.count - start))]
    }
}

private struct FlippedBody: StoredBody {
    let inner: any StoredBody
    var length: Int? { inner.length }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        var bytes = try await inner.read(from: offset, upTo: count).array
        if offset > 0, let last = bytes.indices.last { bytes[last] ^= 1 }
        return ByteChunk(bytes)
    }
}

extension StoredEntry {
    fileprivate func with(storedAt: StoreInstant? = nil, isPinned: Bool? = nil) -> StoredEntry {
        StoredEntry(
            key: key,
            variant: variant,
            version: version,
            description: description,
            bodyLength: bodyLength,
            storedAt: storedAt ?? self.storedAt,
            isPinned: isPinned ?? self.isPinned
        )
    }
}
