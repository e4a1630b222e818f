// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Writes one entry into a ``DiskStore``.
final class DiskWriter: EntryWriter {
    private let engine: DiskEngine
    private let id: UInt64
    /// The entry without its body.
    private let draft: EntryDraft
    /// The last order before it began.
    private let since: UInt64
    private let body: GrowingDiskBody
    /// The bytes of key, variant and description, which count toward the size of the entry.
    private let overhead: Int
    private let isOver = Atomic<Bool>(false)

    init(engine: DiskEngine, id: UInt64, draft: EntryDraft, since: UInt64, body: GrowingDiskBody) {
        (self.engine, self.id, self.draft, self.since, self.body) = (engine, id, draft, since, body)
        overhead = draft.overhead
    }

    deinit {
        abandon()
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        do throws(StoreError) {
            try engine.health.checkOpen()
            if isOver.load(ordering: .acquiring) { throw StoreError.ended }
            let limit = engine.writer.maximumEntrySize - overhead
            guard bytes.count <= limit - body.count else { throw engine.writer.tooLarge }
            var offset = 0
            repeat {
                let end = min(bytes.count, offset + GrowingDiskBody.step)
                if body.append(bytes[offset..<end]) { try await body.flush(isEnd: false) }
                offset = end
            } while offset < bytes.count
        } catch {
            abandon()
            throw error
        }
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // Followers get the whole body whether or not it may be stored, since they requested it.
        body.finish()
        do throws(StoreError) {
            try engine.health.checkOpen()
            if isOver.load(ordering: .acquiring) { throw StoreError.ended }
            var place = body.place
            if place == nil {
                try await body.flush(isEnd: true)
                place = body.place
            }
            guard let place else { throw StoreError.ended }
            var draft = draft
            (draft.body, draft.storedAt) = (place, now)
            if let description {
                // A purge by a tag that it began with supersedes it as well.
                draft.tagsBefore = draft.description.tags
                draft.description = description.kept
            }
            guard draft.bodyLength + draft.overhead <= engine.writer.maximumEntrySize else {
                throw engine.writer.tooLarge
            }
            let purpose = Writer.Purpose.commit(writer: id, since: since)
            let stored = try await engine.writer.store(draft, body: body, purpose: purpose)
            guard let stored else { throw engine.writer.overtaken }
            isOver.store(true, ordering: .releasing)
            if draft.blob != nil { body.abandonUnlessKept() }
            return stored
        } catch {
            abandon()
            throw error
        }
    }

    func abandon() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        engine.index.shard(of: draft.identity.primary).state.withLock { shard in
            _ = shard.writers.end(id)
        }
        body.abandon()
    }

    func follow() -> any StoredBody {
        body
    }
}

/// A body on its way to the disk, shared by its writer and its followers.
///
/// Up to the limit for a record, it is in memory; a longer one goes to a blob, chunk by chunk, and only the last chunk or two stay
/// in memory.
final class GrowingDiskBody: StoredBody {
    private struct Bytes {
        /// The body as it arrived while it is one piece; ``tail`` is empty then.
        var piece: ByteChunk?
        /// The bytes that are not in the blob yet, starting at ``start``.
        var tail: [UInt8] = []
        /// How many bytes of ``piece`` or ``tail`` are already in the blob.
        var start = 0
        /// The blob's number, once there is one.
        var number: UInt64 = 0
        /// The plain bytes in the blob.
        var flushed = 0
        var blob: BlobFile?
        /// The blob's bytes that were granted.
        var granted = 0
        var isOver = false
        /// Whether an entry owns the blob.
        var isKept = false

        /// The number of bytes that are not in the blob.
        var waiting: Int { (piece?.count ?? tail.count) - start }
        var count: Int { flushed + waiting }

        /// Combines several pieces into one.
        mutating func gather() {
            guard let whole = piece.take() else { return }
            tail = whole[start..<whole.count].array
            start = 0
        }

        /// The first bytes that are not in the blob; of a body in one piece, a slice of it.
        func next(_ count: Int) -> ByteChunk {
            let count = min(count, waiting)
            if let piece { return piece[start..<(start + count)] }
            return ByteChunk(copying: tail[start..<(start + count)])
        }

        /// Records that bytes are in the blob.
        mutating func flush(_ count: Int) {
            start += count
            flushed += count
            // Moved up once half of them are done, so that each byte moves about once.
            if piece == nil, start >= tail.count / 2 {
                tail.removeFirst(start)
                start = 0
            }
        }
    }

    private enum Source {
        case memory(ByteChunk)
        case blob(BlobFile, BlobShape, chunk: Int, start: Int)
        case gone
    }

    let engine: DiskEngine
    private let plainPerChunk: Int
    private let bytes = Mutex(Bytes())
    private let progress = BodyProgress()

    /// An empty body, or a complete one in memory.
    init(_ whole: ByteChunk? = nil, engine: DiskEngine) {
        self.engine = engine
        plainPerChunk = BlobChunk.payload - (engine.lookup.seal?.overhead ?? 0)
        guard let whole else { return }
        bytes.withLock { $0.piece = whole }
        progress.advance(to: whole.count)
        progress.end(.whole)
    }

    var length: Int? { progress.wholeLength }
    var bytesInMemory: ByteChunk? { nil }

    /// How many bytes were appended.
    var count: Int { bytes.withLock { $0.count } }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        let available = try await progress.available(past: offset)
        if offset >= available || count <= 0 { return ByteChunk() }
        let limit = min(count, available - offset)
        let chunk: ByteChunk
        switch source(offset, limit: limit) {
        case .gone: throw StoreError.abandoned
        case .memory(let bytes): chunk = bytes
        case .blob(let blob, let shape, let index, let start):
            let engine = engine
            let part = try await engine.lookup.readBody { () throws(StoreError) in
                try BlobReader(host: engine.lookup).read(shape, of: blob, chunks: index..<(index + 1), waits: true)
            }
            guard let part, start < part.count else { throw StoreError.damaged }
            chunk = part[start..<(start + min(limit, part.count - start))]
        }
        engine.health.counters.bytesRead.add(chunk.count, ordering: .relaxed)
        return chunk
    }

    private func source(_ offset: Int, limit: Int) -> Source {
        bytes.withLock { bytes in
            if let blob = bytes.blob, offset < bytes.flushed {
                let shape = shape(bytes)
                let index = offset / plainPerChunk
                return .blob(blob, shape, chunk: index, start: offset - index * plainPerChunk)
            }
            let start = offset - bytes.flushed
            guard start >= 0, start < bytes.waiting else { return .gone }
            let first = bytes.start + start
            if let piece = bytes.piece { return .memory(piece[first..<min(piece.count, first + limit)]) }
            return .memory(ByteChunk(copying: bytes.tail[first..<min(bytes.tail.count, first + limit)]))
        }
    }

    /// The blob as far as it is written.
    private func shape(_ bytes: Bytes) -> BlobShape {
        BlobShape(
            number: bytes.number,
            plainPerChunk: plainPerChunk,
            length: bytes.flushed,
            isWhole: bytes.isOver
        )
    }

    /// How many bytes are added before whole chunks go to the blob: other writers get a turn between two such steps.
    static let step = 1 << 20

    /// Adds bytes, at most ``step`` at a time.
    ///
    /// - Returns: whether enough bytes are collected to write whole chunks to the blob.
    func append(_ chunk: ByteChunk) -> Bool {
        let added = bytes.withLock { bytes -> (count: Int, isDue: Bool) in
            if bytes.count == 0 {
                // The usual short body comes in one piece, which is kept as it is.
                bytes.piece = chunk.compacted()
            } else {
                bytes.gather()
                chunk.append(to: &bytes.tail)
            }
            // One byte stays, since the last chunk of a blob is marked as the last.
            return (bytes.count, bytes.count > engine.log.geometry.inlineLimit && bytes.waiting > plainPerChunk)
        }
        progress.advance(to: added.count)
        return added.isDue
    }

    /// Ends the body for its followers, which continue to read from memory and blob.
    func finish() {
        progress.end(.whole)
    }

    /// Ends the body before it is complete, or gives a complete one up: nothing of it stays on the disk.
    ///
    /// Followers of a complete body continue to read, from memory or from the open file.
    func abandon() {
        let isCutOff = progress.end(.failed(StoreError.abandoned))
        guard bytes.withLock({ $0.count > engine.log.geometry.inlineLimit }) else { return }
        // Queued after a flush in progress.
        engine.threads.later(.writes) { [self] in
            let (blob, number, granted) = bytes.withLock { bytes in
                let gone = bytes.isKept ? (nil, 0, 0) : (bytes.blob, bytes.number, bytes.granted)
                bytes.granted = 0
                if isCutOff { bytes = Bytes() }
                return gone
            }
            engine.quota.endBody(granted)
            if blob != nil { engine.blobs.remove(number, bytes: granted) } else { engine.quota.release(granted) }
        }
    }

    /// Moves the collected bytes to the blob, and makes room if there is none.
    func flush(isEnd: Bool) async throws(StoreError) {
        // Others may take the room before this body does; each of their turns is progress.
        for _ in 0..<1_024 {
            var wanted = 0
            var isDeviceFull = false
            do throws(StoreError) {
                wanted = try await engine.threads.run(.writes) { [self] () throws(StoreError) in
                    try writeChunks(isEnd: isEnd)
                }
                if wanted == 0 { return }
            } catch {
                guard error.code == .noSpace, error.cause != nil else { throw error }
                isDeviceFull = true
            }
            // Also for some later chunks.
            let ahead = isEnd ? bytes.withLock { SpaceQuota.blocks($0.waiting) } : BlobChunk.stride * 4
            let room = isDeviceFull ? 0 : max(wanted, min(ahead, engine.quota.budget.uncommitted / 8))
            try await engine.threads.run(.changes, isUrgent: true) { [engine, isDeviceFull] () throws(StoreError) in
                try engine.room.makeRoomForBlob(room, isDeviceFull: isDeviceFull)
            }
        }
        throw StoreError.noSpace
    }

    /// Moves whole chunks to the blob; at the end, the rest too. For the thread of writes.
    ///
    /// - Returns: how many bytes of room are needed before it can continue, 0 if everything is done: room is made on another
    ///   thread.
    /// - Throws: `.noSpace` with a cause if the device has no room.
    func writeChunks(isEnd: Bool) throws(StoreError) -> Int {
        // Once the store is closed, the directory may belong to another one.
        try engine.health.checkOpen()
        while let part = nextChunk(isEnd: isEnd) {
            let wanted = try write(part)
            if wanted > 0 { return wanted }
        }
        return 0
    }

    private typealias Part = (plain: ByteChunk, index: Int, isLast: Bool)

    private func nextChunk(isEnd: Bool) -> Part? {
        bytes.withLock { bytes in
            let isLast = bytes.waiting <= plainPerChunk
            guard bytes.waiting > 0, !isLast || isEnd else { return nil }
            return (bytes.next(plainPerChunk), index: bytes.flushed / plainPerChunk, isLast: isLast)
        }
    }

    /// - Returns: how many bytes of room are needed first.
    private func write(_ part: Part) throws(StoreError) -> Int {
        let number = bytes.withLock { bytes in
            // Taken from the orders, so that no blob ever has the number of another, not even after a restart.
            if bytes.number == 0 { bytes.number = engine.orders.next() }
            return bytes.number
        }
        let stored: ByteChunk
        if let seal = engine.lookup.seal {
            let context = SealedPart.chunk(blob: number, index: part.index, isLast: part.isLast)
            stored = ByteChunk(try seal.seal(part.plain, context: context))
        } else {
            stored = part.plain
        }
        let trailer = BlobChunk.trailer(
            for: stored,
            number: number,
            index: part.index,
            keyID: engine.lookup.seal?.keyID ?? 0
        )
        let start = part.index * BlobChunk.stride
        let end = start + stored.count + trailer.count
        let granted = bytes.withLock { $0.granted }
        let room = SpaceQuota.blocks(end) - granted
        if room > 0 {
            let others = engine.quota.uncommitted - granted
            let limit = engine.quota.budget.uncommitted
            guard others <= 0 || others + granted + room <= limit else { throw Self.tooManyWriters(limit) }
            guard engine.quota.grant(room, for: .body) else { return room }
            bytes.withLock { $0.granted += room }
        }
        let blob: BlobFile
        if let open = bytes.withLock({ $0.blob }) {
            blob = open
        } else {
            blob = try engine.health.checked(try engine.blobs.create(number))
            // Recorded before the first write, which may fail and leave the file.
            let created = blob
            bytes.withLock { $0.blob = created }
        }
        try engine.health.checked(try engine.log.files.write(stored, ByteChunk(trailer), to: blob.open, at: start))
        engine.health.succeeded()
        bytes.withLock { bytes in
            guard bytes.waiting >= part.plain.count else { return }
            bytes.flush(part.plain.count)
            if part.isLast { bytes.isOver = true }
        }
        return 0
    }

    /// Where the whole body is; nil if it is too long for a record and not completely in its blob.
    var place: EntryDraft.Body? {
        bytes.withLock { bytes in
            if bytes.blob == nil, bytes.count <= engine.log.geometry.inlineLimit {
                return .inline(bytes.piece ?? ByteChunk(bytes.tail))
            }
            return bytes.isOver ? .blob(shape(bytes)) : nil
        }
    }

    /// Gives the blob to the entry: from now on, it is removed with the entry.
    func keepBlob() {
        let granted = bytes.withLock { bytes in
            defer { bytes.isKept = true }
            return bytes.isKept ? 0 : bytes.granted
        }
        engine.quota.endBody(granted)
    }

    /// Removes the blob of an entry that was committed and immediately overtaken.
    func abandonUnlessKept() {
        if !bytes.withLock({ $0.isKept }) { abandon() }
    }

    private static func tooManyWriters(_ limit: Int) -> StoreError {
        let message = """
            Bodies that are being written hold what they may, \(limit) bytes; try again when some have ended, or raise \
            maximumUncommittedBytes.
            """
        return StoreError(.noSpace, message)
    }
}
