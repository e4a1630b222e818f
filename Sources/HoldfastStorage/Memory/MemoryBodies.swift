// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The bytes of a body that is being written into memory, shared by its writer and those who follow it.
final class GrowingBody: StoredBody {
    /// Appends shorter than this are gathered, so that a body of single bytes does not cost an array each.
    private static let gatherBelow = 16_384

    private struct Bytes {
        var chunks: [ByteChunk] = []
        var starts: [Int] = []
        var gathered: [UInt8] = []
        var gatheredStart = 0

        var count: Int { gatheredStart + gathered.count }

        mutating func append(_ bytes: ByteChunk) {
            if bytes.count >= GrowingBody.gatherBelow {
                flush()
                add(bytes.compacted())
            } else {
                gathered.append(contentsOf: bytes)
                if gathered.count >= GrowingBody.gatherBelow { flush() }
            }
        }

        mutating func flush() {
            if gathered.isEmpty { return }
            let bytes = gathered
            gathered = []
            add(ByteChunk(bytes))
        }

        private mutating func add(_ chunk: ByteChunk) {
            chunks.append(chunk)
            starts.append(gatheredStart)
            gatheredStart += chunk.count
        }

        func read(from offset: Int, upTo limit: Int) -> ByteChunk? {
            guard offset < count else { return nil }
            if offset >= gatheredStart {
                let start = offset - gatheredStart
                return ByteChunk(copying: gathered[start..<(start + min(limit, gathered.count - start))])
            }
            var low = 0
            var high = starts.count - 1
            while low < high {
                let middle = (low + high + 1) / 2
                if starts[middle] <= offset { low = middle } else { high = middle - 1 }
            }
            let start = offset - starts[low]
            return chunks[low][start..<(start + min(limit, chunks[low].count - start))]
        }
    }

    private let bytes = Mutex(Bytes())
    private let progress = BodyProgress()
    private let onRead: @Sendable (Int) -> Void

    /// An empty body; `onRead` is told how many bytes each read handed out.
    init(onRead: @escaping @Sendable (Int) -> Void) {
        self.onRead = onRead
    }

    var length: Int? { progress.wholeLength }

    var bytesInMemory: ByteChunk? {
        guard progress.wholeLength != nil else { return nil }
        return bytes.withLock { bytes in
            bytes.flush()
            switch bytes.chunks.count {
            case 0: return ByteChunk()
            case 1: return bytes.chunks[0]
            default: return nil
            }
        }
    }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        let available = try await progress.available(past: offset)
        if offset >= available || count <= 0 { return ByteChunk() }
        let limit = min(count, available - offset)
        guard let chunk = bytes.withLock({ $0.read(from: offset, upTo: limit) }) else { throw StoreError.abandoned }
        onRead(chunk.count)
        return chunk
    }

    /// Adds bytes and wakes those who wait for them.
    func append(_ chunk: ByteChunk) {
        progress.advance(
            to: bytes.withLock { bytes in
                bytes.append(chunk)
                return bytes.count
            }
        )
    }

    /// Ends the body and returns it as one chunk.
    func finish() -> ByteChunk {
        let chunks = bytes.withLock { bytes in
            bytes.flush()
            return bytes.chunks
        }
        let whole: ByteChunk
        if chunks.count == 1 {
            whole = chunks[0]
        } else {
            var joined: [UInt8] = []
            joined.reserveCapacity(chunks.reduce(0) { $0 + $1.count })
            for chunk in chunks { chunk.withUnsafeBytes { joined.append(contentsOf: $0) } }
            whole = ByteChunk(joined)
        }
        if !whole.isEmpty {
            // Followers go on from the one chunk, so the pieces are not held twice.
            bytes.withLock { bytes in
                bytes.chunks = [whole]
                bytes.starts = [0]
            }
        }
        progress.end(.whole)
        return whole
    }

    /// Ends the body before it is whole and frees its bytes; nothing happens once it is whole.
    func abandon() {
        if progress.end(.failed(StoreError.abandoned)) { bytes.withLock { $0 = Bytes() } }
    }
}

/// The body of a committed entry that lies in memory.
package struct MemoryBody: StoredBody {
    private let bytes: ByteChunk

    /// A body of these bytes.
    package init(_ bytes: ByteChunk) {
        self.bytes = bytes
    }

    package var length: Int? { bytes.count }
    package var bytesInMemory: ByteChunk? { bytes }

    package func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let start = min(max(0, offset), bytes.count)
        return bytes[start..<(start + min(max(0, count), bytes.count - start))]
    }
}

/// Writes one entry into a ``MemoryStore``.
final class MemoryWriter: EntryWriter {
    private let store: MemoryStore
    private let id: UInt64
    private let body: GrowingBody

    init(store: MemoryStore, id: UInt64) {
        self.store = store
        self.id = id
        body = GrowingBody { [weak store] in store?.countFollowed($0) }
    }

    deinit {
        abandon()
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        do {
            try store.reserve(bytes.count, for: id)
        } catch {
            abandon()
            throw error
        }
        body.append(bytes)
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // Followers have the whole body whether or not it may be stored: it is what they asked for.
        let whole = body.finish()
        do {
            return try store.commit(id, description, body: whole, now: now)
        } catch {
            store.abandon(id)
            throw error
        }
    }

    func abandon() {
        store.abandon(id)
        body.abandon()
    }

    func follow() -> any StoredBody {
        body
    }
}

/// The body of a version that lies in a ``MemoryStore``, and whether the version still does.
///
/// Snapshots of the version carry it, so that opening the body takes no lock and no second search.
final class HeldBody: Sendable {
    let bytes: ByteChunk
    /// What ``MemoryLedger`` knows the version by.
    let ticket: SlotTicket
    private let owner: ObjectIdentifier
    /// What it is a copy of, whose fate it shares.
    private let original: HeldBody?
    private let gone = Atomic(false)
    private let siblings = Atomic(false)

    /// The body of a version that lies in the shards named.
    init(_ bytes: ByteChunk, ticket: SlotTicket, in owner: AnyObject) {
        (self.bytes, self.ticket) = (bytes, ticket)
        self.owner = ObjectIdentifier(owner)
        original = nil
    }

    /// Another object for the same body, so that threads count references to objects of their own.
    init(copying other: HeldBody) {
        (bytes, ticket, owner, original) = (other.bytes, other.ticket, other.owner, other)
    }

    /// Whether the version left its store; set before the call returns that took it out.
    var isGone: Bool { (original ?? self).gone.load(ordering: .acquiring) }

    /// Whether the version stands beside others of its key, so that a look-up does not tell which of them is used.
    var hasSiblings: Bool { (original ?? self).siblings.load(ordering: .relaxed) }

    func isIn(_ owner: AnyObject) -> Bool { self.owner == ObjectIdentifier(owner) }

    func setGone() { gone.store(true, ordering: .releasing) }

    func setSiblings(_ hasSiblings: Bool) {
        if self.hasSiblings != hasSiblings { siblings.store(hasSiblings, ordering: .relaxed) }
    }
}
