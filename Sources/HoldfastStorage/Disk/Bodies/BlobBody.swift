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

    fileprivate var overhead: Int { BlobChunk.payload - plainPerChunk }

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

    /// The plain bytes of the chunks in a range, from the page cache where it has them.
    ///
    /// Each chunk is read to where it belongs and checked while the processor's cache has it; its trailer lies where the next
    /// chunk goes.
    ///
    /// - Returns: nil where the device must be waited for and `waits` is false.
    func read(_ shape: BlobShape, _ file: BlobFile, chunks: Range<Int>, waits: Bool) throws(StoreError) -> ByteChunk? {
        let plain = chunks.reduce(0) { $0 + shape.plainCount($1) }
        var failure: StoreError?
        var isThere = true
        let bytes = [UInt8](unsafeUninitializedCapacity: plain + shape.overhead + BlobChunk.trailerSize) { room, filled in
            let room = UnsafeMutableRawBufferPointer(room)
            do throws(StoreError) {
                for index in chunks {
                    let part = UnsafeMutableRawBufferPointer(rebasing: room[filled...].prefix(shape.storedCount(index)))
                    isThere = try read(part, shape, file, index: index, waits: waits)
                    guard isThere else { return filled = 0 }
                    filled += shape.plainCount(index)
                }
            } catch {
                failure = error
                filled = 0
            }
        }
        if let failure { throw failure }
        return isThere ? ByteChunk(bytes) : nil
    }

    /// Reads one chunk to the start of `part`, plain bytes first.
    private func read(
        _ part: UnsafeMutableRawBufferPointer,
        _ shape: BlobShape,
        _ file: BlobFile,
        index: Int,
        waits: Bool
    ) throws(StoreError) -> Bool {
        do {
            let got = try engine.files.read(file.open, from: index * BlobChunk.stride, into: part, waits: waits)
            guard let got else { return false }
            engine.succeeded()
            guard got == part.count else { throw DiskEngine.damaged }
        } catch let error as FileSystemError {
            throw engine.failed(error)
        } catch {
            throw DiskEngine.damaged
        }
        let stored = UnsafeRawBufferPointer(part)
        guard let count = BlobChunk.check(stored, number: shape.number, index: index) else { throw DiskEngine.damaged }
        let keyID: UInt32 = stored.number(at: count + 12)
        guard keyID != 0, opens else { return true }
        guard let seal = engine.seal else {
            throw StoreError(.sealed, "The body is sealed; open the store with the key it was sealed with.")
        }
        let isLast = shape.isWhole && index == shape.chunks - 1
        let context = SealedPart.chunk(blob: shape.number, index: UInt64(clamping: index), isLast: isLast).context
        let plain = try seal.open(ByteChunk(copying: stored[0..<count]), keyID: keyID, context: context)
        guard plain.count == shape.plainCount(index) else { throw DiskEngine.damaged }
        part.copyBytes(from: plain)
        return true
    }
}

/// The body of a committed entry in a blob file.
final class BlobBody: StoredBody {
    private struct Recent {
        /// The chunks that were read last, and their plain bytes.
        var chunks = 0..<0
        var bytes = ByteChunk()
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
            recent.window = first == recent.chunks.upperBound ? min(BlobReader.window, recent.window * 2) : 2
            return recent.window
        }
        // As many chunks as are asked for, and some in advance for the reader who goes on.
        let asked = min(BlobReader.window, count / shape.plainPerChunk + 1)
        let chunks = first..<min(shape.chunks, first + max(window, asked))
        do throws(StoreError) {
            let reader = BlobReader(engine: engine)
            var bytes = try reader.read(shape, file, chunks: chunks, waits: false)
            if bytes == nil {
                bytes = try await engine.readBody { [shape, file] () throws(StoreError) in
                    try reader.read(shape, file, chunks: chunks, waits: true)
                }
            }
            let read = bytes ?? ByteChunk()
            recent.withLock { recent in
                recent.chunks = chunks
                recent.bytes = read
            }
            // From what was read, not from what is kept: another reader may have put its own there meanwhile.
            return part(of: read, from: offset - first * shape.plainPerChunk, count)
        } catch {
            if error.code == .corrupt { engine.dropDamaged(source) }
            throw error
        }
    }

    private func held(_ offset: Int, _ count: Int) -> ByteChunk? {
        let index = offset / shape.plainPerChunk
        let (chunks, bytes) = recent.withLock { ($0.chunks, $0.bytes) }
        guard chunks.contains(index) else { return nil }
        return part(of: bytes, from: offset - chunks.lowerBound * shape.plainPerChunk, count)
    }

    private func part(of bytes: ByteChunk, from start: Int, _ count: Int) -> ByteChunk {
        guard start < bytes.count else { return ByteChunk() }
        let part = bytes[start..<(start + min(count, bytes.count - start))]
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
