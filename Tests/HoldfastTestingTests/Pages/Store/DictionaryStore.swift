// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Synchronization

final class DictionaryStore: CacheStore {
    let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
    private let book: Mutex<StoreBook>

    init(capacity: Int) {
        book = Mutex(StoreBook(capacity: capacity))
    }

    /// Runs a change under the lock, unless the store is closed.
    func change<Result: Sendable>(
        now: StoreInstant? = nil,
        _ body: (inout StoreBook) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try book.withLock { book throws(StoreError) in
            if book.isClosed { throw StoreError(.closed, "The store is closed; open a new one.") }
            if let now { book.now = max(book.now, now) }
            return try body(&book)
        }
    }

    var statistics: StoreStatistics { book.withLock { $0.counts } }

    func close() async {
        book.withLock { book in
            book.isClosed = true
            book.held = [:]
            book.writers = [:]
            book.counts.entryCount = 0
            book.counts.bytesUsed = 0
        }
    }
}

extension DictionaryStore {
    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        try? lookUp(key, now: now)
    }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try lookUp(key, now: now)
    }

    private func lookUp(_ key: StoreKey, now: StoreInstant) throws(StoreError) -> [StoredEntry] {
        try change(now: now) { book throws(StoreError) in
            book.counts.lookups += 1
            guard let found = book.held[key] else { return [] }
            book.counts.lookupsFound += 1
            book.touch(key)
            return found.map(\.entry)
        }
    }

    func peekBody(of entry: StoredEntry) -> ByteChunk? {
        try? open(entry)
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        WholeBody(bytes: try open(entry))
    }

    private func open(_ entry: StoredEntry) throws(StoreError) -> ByteChunk {
        try change { book throws(StoreError) in
            guard let held = book.find(entry) else {
                throw StoreError(.superseded, "This version of the entry is gone; look the key up again.")
            }
            book.counts.bytesRead += held.body.count
            return held.body
        }
    }
}

extension DictionaryStore {
    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let description = bounded(description)
        let cost = StoreBook.cost(key, variant, description)
        let id = try change(now: now) { book throws(StoreError) in
            try book.check(cost, body: max(0, expectedLength ?? 0))
            try book.makeRoom(for: cost)
            let id = book.nextNumber()
            book.writers[id] = .init(key: key, variant: variant, description: description, reserved: cost)
            book.counts.bytesUsed += cost
            return id
        }
        return DictionaryWriter(self, id)
    }

    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let description = bounded(description)
        return try change(now: now) { book throws(StoreError) in
            guard let old = book.find(entry) else { return nil }
            let cost = StoreBook.cost(entry.key, entry.variant, description)
            try book.check(cost, body: old.body.count)
            // Used just now, it is the last that makes room for its own growth.
            book.touch(entry.key, entry.version)
            try book.makeRoom(for: cost + old.body.count - old.cost)
            guard let old = book.find(entry) else {
                throw StoreError(.noSpace, "The longer description found no room; the entry was evicted.")
            }
            return book.publish(entry.key, entry.variant, description, old.body, storedAt: old.entry.storedAt)
        }
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try change { book throws(StoreError) in
            guard let place = book.held[entry.key]?.firstIndex(where: { $0.entry.version == entry.version }),
                let old = book.held[entry.key]?[place]
            else { return false }
            if old.entry.isPinned == pinned { return true }
            if pinned, book.pinnedBytes + old.cost > book.counts.capacity / 2 { return false }
            book.pinnedBytes += pinned ? old.cost : -old.cost
            book.held[entry.key]?[place].entry = StoredEntry(
                key: old.entry.key,
                variant: old.entry.variant,
                version: old.entry.version,
                description: old.entry.description,
                bodyLength: old.entry.bodyLength,
                storedAt: old.entry.storedAt,
                isPinned: pinned
            )
            return true
        }
    }
}

extension DictionaryStore {
    func remove(_ entry: StoredEntry) async throws(StoreError) {
        try change { book throws(StoreError) in
            guard book.find(entry) != nil else { return }
            book.take(entry)
            book.counts.entriesRemoved += 1
        }
    }

    func invalidate(_ key: StoreKey) async throws(StoreError) {
        try change { book throws(StoreError) in
            for (id, writing) in book.writers where writing.key == key { book.writers[id]?.isSuperseded = true }
            let gone = book.held[key] ?? []
            for held in gone { book.take(held.entry) }
            book.counts.entriesRemoved += gone.count
        }
    }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try change(now: now) { book throws(StoreError) in
            book.remove { entry in
                switch selection.form {
                case .all: true
                case .tag(let tag): entry.description.tags.contains { $0.utf8.elementsEqual(tag.utf8) }
                case .keyPrefix(let prefix): entry.key.hasPrefix(prefix)
                case .matching(let predicate): predicate(entry)
                }
            }
        }
    }
}

final class DictionaryWriter: EntryWriter {
    private let store: DictionaryStore
    private let id: UInt64
    private let body: GrowingBody

    init(_ store: DictionaryStore, _ id: UInt64) {
        self.store = store
        self.id = id
        body = GrowingBody { count in _ = try? store.change { $0.counts.bytesRead += count } }
    }

    deinit { abandon() }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        try store.change { book throws(StoreError) in try book.reserve(bytes.count, for: id) }
        body.append(bytes)
    }

    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        do throws(StoreError) {
            let entry = try store.change(now: now) { book throws(StoreError) in
                try book.commit(id, description, body.bytes, now: now)
            }
            body.end(.success(()))
            return entry
        } catch {
            // What was invalidated must not be stored; those who follow are reading the answer to their own request.
            if error.code == .superseded { body.end(.success(())) }
            throw error
        }
    }

    func abandon() {
        _ = try? store.change { $0.end(id) }
        body.end(.failure(StoreError(.abandoned, "The writer gave the entry up; fetch it again.")))
    }

    func follow() -> any StoredBody { body }
}

struct WholeBody: StoredBody {
    let bytes: ByteChunk

    var length: Int? { bytes.count }
    var bytesInMemory: ByteChunk? { bytes }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        offset < bytes.count ? bytes[offset..<(offset + min(count, bytes.count - offset))] : ByteChunk()
    }
}

final class GrowingBody: StoredBody {
    private struct State {
        var bytes: [UInt8] = []
        var ending: Result<Void, StoreError>?
        var waiting: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())
    private let onRead: @Sendable (Int) -> Void

    init(onRead: @escaping @Sendable (Int) -> Void) {
        self.onRead = onRead
    }

    var bytes: ByteChunk { state.withLock { ByteChunk($0.bytes) } }
    var bytesInMemory: ByteChunk? { length == nil ? nil : bytes }
    var length: Int? {
        state.withLock { state in
            if case .success? = state.ending { state.bytes.count } else { nil }
        }
    }

    func append(_ bytes: ByteChunk) {
        change { bytes.append(to: &$0.bytes) }
    }

    /// Only the first ending counts.
    func end(_ ending: Result<Void, StoreError>) {
        change { if $0.ending == nil { $0.ending = ending } }
    }

    /// Changes the state and wakes those who wait: after the lock, since anyone who wakes takes it.
    private func change(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            change(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.finish() }
    }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        while true {
            let (changes, waiter) = AsyncStream.makeStream(of: Void.self)
            let found = try state.withLock { state throws(StoreError) -> ByteChunk? in
                if case .failure(let error)? = state.ending { throw error }
                if offset < state.bytes.count {
                    return ByteChunk(copying: state.bytes[offset..<(offset + min(count, state.bytes.count - offset))])
                }
                if state.ending != nil { return ByteChunk() }
                state.waiting.append(waiter)
                return nil
            }
            if let found {
                onRead(found.count)
                return found
            }
            // Ends with the next change, or with the task.
            for await _ in changes {}
            if Task.isCancelled { throw StoreError(.cancelled, "The task was cancelled while it waited for bytes.") }
        }
    }
}
