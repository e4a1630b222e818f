// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// How the chunks of a blob lie in its file.
struct BlobShape: Sendable, Hashable {
    let number: UInt64
    /// Plain bytes of every chunk but the last.
    let plainPerChunk: Int
    /// Plain bytes of the whole, as far as they are in the file.
    let length: Int
    /// Whether the last chunk that `length` covers is the blob's last.
    let isWhole: Bool

    private var overhead: Int { BlobChunk.payload - plainPerChunk }

    /// How many chunks there are.
    var chunks: Int { (length + plainPerChunk - 1) / plainPerChunk }

    /// The plain bytes of a chunk.
    func plainCount(_ index: Int) -> Int {
        min(plainPerChunk, length - index * plainPerChunk)
    }

    /// The bytes of a chunk in the file, its trailer included.
    func storedCount(_ index: Int) -> Int {
        plainCount(index) + overhead + BlobChunk.trailerSize
    }
}

extension BlobShape {
    /// The shape of the whole blob that a committed record names.
    init(_ header: RecordHeader) {
        self.init(
            number: header.bodyWord,
            plainPerChunk: header.inlineLength,
            length: header.bodyLength,
            isWhole: true
        )
    }
}

/// Reads the chunks of a blob, checks and unseals them. Blocks.
struct BlobReader: Sendable {
    let engine: any BlobHost
    /// Whether what is sealed is opened; else its checksums are checked and nothing more.
    var opens = true

    /// The most chunks that one read takes: a mebibyte and what its trailers push out.
    static let window = 17

    /// The plain bytes of each chunk in a range, from the page cache where it has them.
    ///
    /// - Returns: nil where the device must be waited for and `waits` is false.
    func read(_ shape: BlobShape, _ file: BlobFile, chunks: Range<Int>, waits: Bool) throws(StoreError) -> [ByteChunk]?
    {
        let last = chunks.upperBound - 1
        let start = chunks.lowerBound * BlobChunk.stride
        let count = (last - chunks.lowerBound) * BlobChunk.stride + shape.storedCount(last)
        let bytes: [UInt8]
        do {
            if waits {
                bytes = try engine.files.read(file.open, from: start, count: count)
            } else {
                guard let cached = try engine.files.readIfCached(file.open, from: start, count: count) else {
                    return nil
                }
                bytes = cached
            }
        } catch {
            throw engine.failed(error)
        }
        engine.succeeded()
        guard bytes.count == count else { throw DiskEngine.damaged }
        let stored = ByteChunk(bytes)
        var parts: [ByteChunk] = []
        parts.reserveCapacity(chunks.count)
        for index in chunks {
            let place = (index - chunks.lowerBound) * BlobChunk.stride
            parts.append(try plain(stored[place..<(place + shape.storedCount(index))], shape, index: index))
        }
        return parts
    }

    private func plain(_ part: ByteChunk, _ shape: BlobShape, index: Int) throws(StoreError) -> ByteChunk {
        guard let chunk = BlobChunk.open(part, number: shape.number, index: index) else { throw DiskEngine.damaged }
        guard chunk.keyID != 0, opens else { return chunk.bytes }
        guard let seal = engine.seal else {
            throw StoreError(.sealed, "The body is sealed; open the store with the key it was sealed with.")
        }
        let isLast = shape.isWhole && index == shape.chunks - 1
        let part = SealedPart.chunk(blob: shape.number, index: UInt64(clamping: index), isLast: isLast)
        return ByteChunk(try seal.open(chunk.bytes, keyID: chunk.keyID, context: part.context))
    }
}

/// The body of a committed entry in a blob file.
final class BlobBody: StoredBody {
    private struct Recent {
        var first = 0
        var chunks: [ByteChunk] = []
        /// How many chunks the next read takes; it grows while reads go on where the last one ended.
        var window = 2
    }

    private let engine: any BlobHost
    private let source: RecordSource
    private let shape: BlobShape
    private let file: BlobFile
    private let recent = Mutex(Recent())

    init(engine: any BlobHost, source: RecordSource, file: BlobFile) {
        self.engine = engine
        self.source = source
        self.file = file
        shape = BlobShape(source.header)
    }

    var length: Int? { shape.length }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        guard offset < shape.length, count > 0 else { return ByteChunk() }
        if let bytes = held(offset, count) { return bytes }
        let first = offset / shape.plainPerChunk
        let window = recent.withLock { recent in
            let goesOn = first == recent.first + recent.chunks.count
            recent.window = goesOn ? min(BlobReader.window, recent.window * 2) : 2
            return recent.window
        }
        // As many chunks as are asked for, and some in advance for the reader who goes on.
        let asked = min(BlobReader.window, count / shape.plainPerChunk + 1)
        let chunks = first..<min(shape.chunks, first + max(window, asked))
        do throws(StoreError) {
            let reader = BlobReader(engine: engine)
            var parts = try reader.read(shape, file, chunks: chunks, waits: false)
            if parts == nil {
                parts = try await engine.readBody { [shape, file] () throws(StoreError) in
                    try reader.read(shape, file, chunks: chunks, waits: true)
                }
            }
            recent.withLock { recent in
                recent.first = first
                recent.chunks = parts ?? []
            }
        } catch {
            if error.code == .corrupt { engine.dropDamaged(source) }
            throw error
        }
        return held(offset, count) ?? ByteChunk()
    }

    private func held(_ offset: Int, _ count: Int) -> ByteChunk? {
        let index = offset / shape.plainPerChunk
        let chunk = recent.withLock { recent -> ByteChunk? in
            let place = index - recent.first
            return recent.chunks.indices.contains(place) ? recent.chunks[place] : nil
        }
        let start = offset - index * shape.plainPerChunk
        guard let chunk, start < chunk.count else { return nil }
        let part = chunk[start..<(start + min(count, chunk.count - start))]
        engine.counters.bytesRead.add(part.count, ordering: .relaxed)
        return part
    }
}

/// The body of an entry whose bytes came with its record.
final class InlineBody: StoredBody {
    private let bytes: ByteChunk

    init(_ bytes: ByteChunk) {
        self.bytes = bytes
    }

    var length: Int? { bytes.count }
    var bytesInMemory: ByteChunk? { bytes }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        guard offset < bytes.count, count > 0 else { return ByteChunk() }
        return bytes[offset..<(offset + min(count, bytes.count - offset))]
    }
}
