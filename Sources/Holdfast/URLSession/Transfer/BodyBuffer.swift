// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// What of a response body has come and has not been read yet: in memory up to a limit, beyond it in a spill file.
///
/// It keeps the books and the bytes in memory; writing and reading the file is its owner's part. Bytes in memory are always
/// older than bytes in the file: once something was spilled, all that comes is spilled until the reader has caught up.
struct BodyBuffer {
    /// Where arriving bytes go.
    enum Placement: Equatable {
        /// They were taken into memory.
        case memory
        /// They are to be written to the file at this offset, and reported with ``spilled(_:)``.
        case spill(offset: Int)
        /// They exceed the limit of the file.
        case refused
    }

    /// What a reader gets next.
    enum Supply: Equatable {
        case chunk(ByteChunk)
        /// Bytes of the file, to be reported with ``readBack(_:)`` once they were read.
        case spilled(offset: Int, count: Int)
        case empty
    }

    private static let readSize = 256 << 10
    private let memoryLimit: Int
    private let diskLimit: Int
    private var chunks: [ByteChunk] = []
    private var firstChunk = 0
    private var bytesInMemory = 0
    private var reserved = 0
    private var written = 0
    private var consumed = 0

    init(memoryLimit: Int, diskLimit: Int) {
        self.memoryLimit = memoryLimit
        self.diskLimit = diskLimit
    }

    /// Finds the place of `chunk`; bytes are placed in the order they came.
    mutating func place(_ chunk: ByteChunk) -> Placement {
        if reserved == 0 && chunk.count <= memoryLimit - bytesInMemory {
            keep(chunk)
            return .memory
        }
        guard chunk.count <= diskLimit - reserved else { return .refused }
        defer { reserved += chunk.count }
        return .spill(offset: reserved)
    }

    /// Takes `chunk` into memory whatever the limit, for bytes that are in memory anyway.
    mutating func keep(_ chunk: ByteChunk) {
        chunks.append(chunk)
        bytesInMemory += chunk.count
    }

    /// As many bytes as ``place(_:)`` gave an offset for have been written.
    mutating func spilled(_ count: Int) {
        written += count
    }

    /// What to read now; bytes in memory are given away, bytes in the file stay until ``readBack(_:)``.
    mutating func next() -> Supply {
        if firstChunk < chunks.count {
            let chunk = chunks[firstChunk]
            chunks[firstChunk] = ByteChunk()
            firstChunk += 1
            bytesInMemory -= chunk.count
            if firstChunk == chunks.count {
                chunks.removeAll(keepingCapacity: true)
                firstChunk = 0
            }
            return .chunk(chunk)
        }
        guard consumed < written else { return .empty }
        return .spilled(offset: consumed, count: min(written - consumed, BodyBuffer.readSize))
    }

    /// So many bytes of the file were read.
    ///
    /// A file that has been read to its end, with no write under way, is used again from its start.
    mutating func readBack(_ count: Int) {
        consumed += count
        guard consumed == reserved else { return }
        (reserved, written, consumed) = (0, 0, 0)
    }

    /// Forgets all bytes and refuses none: for a body that nobody will read.
    mutating func removeAll() {
        self = BodyBuffer(memoryLimit: memoryLimit, diskLimit: diskLimit)
    }
}
