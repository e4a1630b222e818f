// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A body on its way to the disk, shared by its writer and those who follow it.
///
/// Up to the limit of what a record holds it lies in memory; what is longer goes to a blob, chunk by chunk, and only the
/// last chunk or two stay in memory.
final class GrowingDiskBody: StoredBody {
    private struct Bytes {
        /// What is not in the blob yet.
        var tail: [UInt8] = []
        /// Plain bytes in the blob.
        var flushed = 0
        var blob: BlobFile?
        /// Bytes of the blob in the ledger.
        var granted = 0
        var storedBytes = 0
        var isOver = false
        /// Whether an entry has the blob.
        var isKept = false
    }

    private enum Source {
        case memory(ByteChunk)
        case blob(BlobFile, BlobShape, chunk: Int, start: Int)
        case gone
    }

    let engine: DiskEngine
    let number: UInt64
    private let plainPerChunk: Int
    private let bytes = Mutex(Bytes())
    private let progress = BodyProgress()

    init(engine: DiskEngine) {
        self.engine = engine
        number = engine.orders.next()
        plainPerChunk = BlobChunk.payload - (engine.seal?.overhead ?? 0)
    }

    var length: Int? { progress.wholeLength }
    var bytesInMemory: ByteChunk? { nil }

    /// How many bytes were appended.
    var count: Int { bytes.withLock { $0.flushed + $0.tail.count } }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        let available = try await progress.available(past: offset)
        if offset >= available || count <= 0 { return ByteChunk() }
        let limit = min(count, available - offset)
        let chunk: ByteChunk
        switch source(offset, limit) {
        case .gone: throw Self.abandoned
        case .memory(let bytes): chunk = bytes
        case .blob(let blob, let shape, let index, let start):
            let engine = engine
            let parts = try await engine.threads.run(.reads) { () throws(StoreError) in
                try BlobReader(engine: engine).read(shape, blob, chunks: index..<(index + 1), waits: true)
            }
            guard let part = parts?.first, start < part.count else { throw DiskEngine.damaged }
            chunk = part[start..<(start + min(limit, part.count - start))]
        }
        engine.counters.bytesRead.add(chunk.count, ordering: .relaxed)
        return chunk
    }

    private func source(_ offset: Int, _ limit: Int) -> Source {
        bytes.withLock { bytes in
            if let blob = bytes.blob, offset < bytes.flushed {
                let shape = BlobShape(
                    number: number,
                    plainPerChunk: plainPerChunk,
                    length: bytes.flushed,
                    isWhole: bytes.isOver
                )
                let index = offset / plainPerChunk
                return .blob(blob, shape, chunk: index, start: offset - index * plainPerChunk)
            }
            let start = offset - bytes.flushed
            guard start >= 0, start < bytes.tail.count else { return .gone }
            return .memory(ByteChunk(copying: bytes.tail[start..<min(bytes.tail.count, start + limit)]))
        }
    }

    /// Adds bytes.
    ///
    /// - Returns: whether so many have gathered that whole chunks should go to the blob.
    func append(_ chunk: ByteChunk) -> Bool {
        let (count, isDue) = bytes.withLock { bytes in
            if bytes.tail.isEmpty, bytes.flushed == 0 {
                // The usual short body comes in one piece, which is kept as it is.
                bytes.tail = chunk.array
            } else {
                chunk.append(to: &bytes.tail)
            }
            let total = bytes.flushed + bytes.tail.count
            // One byte stays behind, since the last chunk of a blob says that it is the last.
            return (total, total > engine.geometry.inlineLimit && bytes.tail.count > plainPerChunk)
        }
        progress.advance(to: count)
        return isDue
    }

    /// Ends the body for its followers, who read on from memory and blob.
    func finish() {
        progress.end(.whole)
    }

    /// Ends the body before it is whole, or gives a whole one up: nothing of it stays on the disk.
    ///
    /// Those who follow a whole body read on, from memory or from the file that is open.
    func abandon() {
        let isCutOff = progress.end(.failed(Self.abandoned))
        guard bytes.withLock({ $0.flushed + $0.tail.count > engine.geometry.inlineLimit }) else { return }
        // In line behind a flush that is under way.
        engine.threads.later(.writes) { [self] in
            let (blob, granted) = bytes.withLock { bytes in
                let gone = bytes.isKept ? (nil, 0) : (bytes.blob, bytes.granted)
                bytes.granted = 0
                if isCutOff { bytes = Bytes() }
                return gone
            }
            if blob != nil { engine.blobs.remove(number, bytes: granted) } else { engine.ledger.release(granted) }
        }
    }

    /// Moves whole chunks to the blob; at the end the rest, too. For the thread of writes.
    ///
    /// - Throws: `.noSpace` when there is no room for them: what makes room runs on another thread.
    func flush(isEnd: Bool) throws(StoreError) {
        while let part = nextChunk(isEnd: isEnd) {
            try write(part)
        }
    }

    private struct Part {
        let plain: ByteChunk
        let index: Int
        let isLast: Bool
    }

    private func nextChunk(isEnd: Bool) -> Part? {
        bytes.withLock { bytes in
            let isLast = bytes.tail.count <= plainPerChunk
            guard !bytes.tail.isEmpty, !isLast || isEnd else { return nil }
            let plain = ByteChunk(copying: bytes.tail.prefix(plainPerChunk))
            return Part(plain: plain, index: bytes.flushed / plainPerChunk, isLast: isLast)
        }
    }

    private func write(_ part: Part) throws(StoreError) {
        let stored: ByteChunk
        if let seal = engine.seal {
            let context = SealedPart.chunk(blob: number, index: UInt64(clamping: part.index), isLast: part.isLast)
                .context
            stored = ByteChunk(try seal.seal(part.plain, context: context))
        } else {
            stored = part.plain
        }
        let trailer = BlobChunk.trailer(for: stored, number: number, index: part.index, keyID: engine.seal?.keyID ?? 0)
        let start = part.index * BlobChunk.stride
        let end = start + stored.count + trailer.count
        let room = SpaceLedger.blocks(end) - bytes.withLock { $0.granted }
        guard room <= 0 || engine.ledger.grant(room, leaving: engine.geometry.segmentSize) else {
            throw DiskEngine.noSpace
        }
        if room > 0 { bytes.withLock { $0.granted += room } }
        let blob: BlobFile
        if let open = bytes.withLock({ $0.blob }) {
            blob = open
        } else {
            blob = try create()
            // Noted before the first write, which may fail and leave the file.
            let created = blob
            bytes.withLock { $0.blob = created }
        }
        do {
            try engine.files.write(stored, ByteChunk(trailer), to: blob.open, at: start)
        } catch {
            throw engine.failed(error)
        }
        engine.succeeded()
        bytes.withLock { bytes in
            guard bytes.tail.count >= part.plain.count else { return }
            bytes.tail.removeFirst(part.plain.count)
            bytes.flushed += part.plain.count
            bytes.storedBytes = end
            if part.isLast { bytes.isOver = true }
        }
    }

    private func create() throws(StoreError) -> BlobFile {
        do {
            return try engine.blobs.create(number)
        } catch {
            throw engine.failed(error)
        }
    }

    /// Whether the body is too long for a record.
    var needsBlob: Bool {
        bytes.withLock { $0.blob != nil || $0.flushed + $0.tail.count > engine.geometry.inlineLimit }
    }

    /// Where the whole body is.
    var place: EntryDraft.Body {
        bytes.withLock { bytes in
            guard bytes.blob != nil else { return .inline(ByteChunk(bytes.tail)) }
            return .blob(
                number: number,
                length: bytes.flushed,
                storedBytes: bytes.storedBytes,
                plainPerChunk: plainPerChunk
            )
        }
    }

    /// Lets the entry have the blob: from now on it is removed with the entry.
    func keepBlob() {
        bytes.withLock { $0.isKept = true }
    }

    /// Removes the blob of an entry that was committed and overtaken at once.
    func letGo() {
        if !bytes.withLock({ $0.isKept }) { abandon() }
    }

    private static let abandoned = StoreError(
        .abandoned,
        "The writer gave up before the body was whole; send the request again."
    )
}
