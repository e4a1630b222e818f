// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The bytes of a body that is being written into memory, shared by its writer and its followers.
final class GrowingBody: StoredBody {
    /// Appends shorter than this are combined, so that a body of single bytes does not cost an array for each.
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
                bytes.append(to: &gathered)
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

    /// An empty body; `onRead` is called with the number of bytes that each read returned.
    init(onRead: @escaping @Sendable (Int) -> Void) { self.onRead = onRead }

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

    /// Adds bytes and wakes the readers that wait for them.
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
            // Followers continue from the one chunk, so the pieces are not held twice.
            bytes.withLock { bytes in
                bytes.chunks = [whole]
                bytes.starts = [0]
            }
        }
        progress.end(.whole)
        return whole
    }

    /// Ends the body before it is complete and frees its bytes; does nothing once it is complete.
    func abandon() {
        if progress.end(.failed(StoreError.abandoned)) { bytes.withLock { $0 = Bytes() } }
    }
}

/// The body of a committed entry in memory.
package struct MemoryBody: StoredBody {
    private let bytes: ByteChunk

    /// A body of these bytes.
    package init(_ bytes: ByteChunk) { self.bytes = bytes }

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
        body = GrowingBody { [weak store] in store?.bytesRead.add($0) }
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
        // Followers get the whole body whether or not it may be stored, since they requested it.
        let whole = body.finish()
        do {
            return try store.commit(id, newDescription: description, body: whole, now: now)
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

/// The body of a version in a ``MemoryStore``, and whether the version is still there.
///
/// Snapshots of the version contain it, so that opening the body takes no lock and no second search.
final class ResidentBody: Sendable {
    let bytes: ByteChunk
    /// The version's handle in ``MemoryAccounting``.
    let handle: SlotHandle
    private let owner: ObjectIdentifier
    /// The original that it is a copy of; when the original is gone, so is this.
    private let original: ResidentBody?
    private let gone = Atomic(false)
    private let siblings = Atomic(false)

    /// The body of a version in these shards.
    init(_ bytes: ByteChunk, handle: SlotHandle, in owner: AnyObject) {
        (self.bytes, self.handle) = (bytes, handle)
        self.owner = ObjectIdentifier(owner)
        original = nil
    }

    /// Another object for the same body, so that threads change their own reference counts.
    init(copying other: ResidentBody) {
        (bytes, handle, owner, original) = (other.bytes, other.handle, other.owner, other)
    }

    /// Whether the version left its store; set before the call that removed it returns.
    var isGone: Bool { (original ?? self).gone.load(ordering: .acquiring) }

    /// Whether its key has several versions, so that a lookup does not show which of them is used.
    var hasSiblings: Bool { (original ?? self).siblings.load(ordering: .relaxed) }

    func isIn(_ owner: AnyObject) -> Bool { self.owner == ObjectIdentifier(owner) }

    func setGone() { gone.store(true, ordering: .releasing) }

    func setSiblings(_ hasSiblings: Bool) {
        if self.hasSiblings != hasSiblings { siblings.store(hasSiblings, ordering: .relaxed) }
    }
}
