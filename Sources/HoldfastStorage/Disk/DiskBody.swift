// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A file with body bytes that is open; it closes when the last reader or writer drops it.
final class DiskBodyFile: Sendable {
    let number: UInt64
    let file: OpenFile
    private let engine: DiskEngine

    /// Takes over an open file that the state already counts as open.
    init(number: UInt64, file: OpenFile, engine: DiskEngine) {
        self.number = number
        self.file = file
        self.engine = engine
    }

    deinit {
        // Closing the last descriptor of an unlinked file frees its blocks, which may take long: not on this thread.
        engine.state.withLock { $0.dropped.append(DroppedFile(file: file, body: number)) }
        engine.threads.later(.changes) { [engine] in engine.closeDropped() }
    }

    /// Reads: bytes whose checksums hold, from `offset` to at most `limit`, the end of what the checksums cover.
    func read(from offset: Int, upTo count: Int, limit: Int, checksums: [UInt64]) throws(StoreError) -> ByteChunk {
        let size = BodyPlace.chunkSize
        let end = offset + min(count, limit - offset, 16 * size)
        let firstChunk = offset / size
        let start = firstChunk * size
        let stop = min(limit, (end + size - 1) / size * size)
        let bytes: [UInt8]
        do {
            bytes = try engine.files.read(file, from: start, count: stop - start)
        } catch {
            throw engine.failed(error)
        }
        let holds =
            bytes.count == stop - start
            && bytes.withUnsafeBytes { buffer in
                stride(from: 0, to: buffer.count, by: size).allSatisfy { place in
                    let part = UnsafeRawBufferPointer(rebasing: buffer[place..<min(place + size, buffer.count)])
                    let chunk = firstChunk + place / size
                    return chunk < checksums.count
                        && BodyPlace.checksum(part, file: number, chunk: chunk) == checksums[chunk]
                }
            }
        guard holds else {
            throw StoreError(.corrupt, "The body on the disk is damaged; the entry is removed, fetch it again.")
        }
        engine.state.withLock { $0.rest.succeeded() }
        return ByteChunk(bytes)[(offset - start)..<(end - start)]
    }
}

/// The body of a committed entry on the disk.
final class DiskBody: StoredBody {
    private let engine: DiskEngine
    private let entry: StoredEntry
    private let file: DiskBodyFile?
    private let checksums: [UInt64]
    private let last = Mutex<(start: Int, bytes: ByteChunk)>((0, ByteChunk()))

    /// A body; an empty one has no file.
    init(engine: DiskEngine, entry: StoredEntry, file: DiskBodyFile?, checksums: [UInt64]) {
        self.engine = engine
        self.entry = entry
        self.file = file
        self.checksums = checksums
    }

    var length: Int? { entry.bodyLength }

    /// Only an empty body needs no look at the disk.
    var bytesInMemory: ByteChunk? { file == nil ? ByteChunk() : nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        guard let file, offset < entry.bodyLength, count > 0 else { return ByteChunk() }
        let count = min(count, entry.bodyLength - offset)
        let (start, recent) = last.withLock { $0 }
        if offset >= start, offset - start <= recent.count - count {
            return counted(recent[(offset - start)..<(offset - start + count)])
        }
        // Short reads fetch a whole chunk, because the checksum needs it, and the next ones are served from that.
        let isShort = count < BodyPlace.chunkSize
        let from = isShort ? offset / BodyPlace.chunkSize * BodyPlace.chunkSize : offset
        let wanted = isShort ? max(BodyPlace.chunkSize, offset - from + count) : count
        do throws(StoreError) {
            let chunk = try await engine.threads.run(.reads) { [checksums, entry] () throws(StoreError) in
                try file.read(from: from, upTo: wanted, limit: entry.bodyLength, checksums: checksums)
            }
            if isShort { last.withLock { $0 = (from, chunk) } }
            return counted(chunk[(offset - from)..<min(offset - from + count, chunk.count)])
        } catch {
            if error.code == .corrupt { await engine.dropCorrupt(entry) }
            throw error
        }
    }

    private func counted(_ chunk: ByteChunk) -> ByteChunk {
        engine.state.withLock { $0.counts.bytesRead &+= chunk.count }
        return chunk
    }
}
