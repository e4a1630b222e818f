// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A body on its way to the disk: whole chunks in its file, the rest in memory; shared by its writer and those who follow.
final class GrowingDiskBody: StoredBody {
    private struct Bytes {
        var tail: [UInt8] = []
        var flushed = 0
        var checksums: [UInt64] = []
        var file: DiskBodyFile?
    }

    private enum Source {
        case memory(ByteChunk)
        case file(DiskBodyFile, limit: Int, checksums: [UInt64])
        case gone
    }

    let number = FileNumber.random()
    private let engine: DiskEngine
    private let writer: UInt64
    private let bytes = Mutex(Bytes())
    private let progress = BodyProgress()

    init(engine: DiskEngine, writer: UInt64) {
        self.engine = engine
        self.writer = writer
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
        let source = bytes.withLock { bytes -> Source in
            if let file = bytes.file, offset < bytes.flushed {
                return .file(file, limit: bytes.flushed, checksums: bytes.checksums)
            }
            let start = offset - bytes.flushed
            guard start >= 0, start < bytes.tail.count else { return .gone }
            return .memory(ByteChunk(copying: bytes.tail[start..<min(bytes.tail.count, start + limit)]))
        }
        let chunk: ByteChunk
        switch source {
        case .gone: throw Self.abandoned
        case .memory(let bytes): chunk = bytes
        case .file(let file, let fileLimit, let checksums):
            chunk = try await engine.threads.run(.reads) { () throws(StoreError) in
                try file.read(from: offset, upTo: limit, limit: fileLimit, checksums: checksums)
            }
        }
        engine.state.withLock { $0.counts.bytesRead &+= chunk.count }
        return chunk
    }

    /// Adds bytes.
    ///
    /// - Returns: whether so many have gathered that they should be flushed.
    func append(_ chunk: ByteChunk) -> Bool {
        let (count, isFull) = bytes.withLock { bytes in
            chunk.withUnsafeBytes { bytes.tail.append(contentsOf: $0) }
            return (bytes.flushed + bytes.tail.count, bytes.tail.count >= BodyPlace.chunkSize)
        }
        progress.advance(to: count)
        return isFull
    }

    /// Ends the body for its followers, who read on from memory and file.
    func finish() {
        progress.end(.whole)
    }

    /// Ends the body before it is whole; nothing happens once it is.
    func abandon() {
        guard progress.end(.failed(Self.abandoned)) else { return }
        // Taken out under the lock and dropped outside of it.
        let file = bytes.withLock { bytes in
            let file = bytes.file
            bytes = Bytes()
            return file
        }
        withExtendedLifetime(file) {}
    }

    /// Changes: writes whole chunks to the file, at the end the rest, too.
    func flush(all: Bool) throws(StoreError) {
        // The store may have been closed since these bytes were handed over, and its directory be another's by now.
        try engine.checkWriter(writer)
        let size = BodyPlace.chunkSize
        let (part, start, open) = bytes.withLock { bytes in
            let count = all ? bytes.tail.count : bytes.tail.count / size * size
            return (Array(bytes.tail.prefix(count)), bytes.flushed, bytes.file)
        }
        if part.isEmpty { return }
        let room = DiskState.blocks(start + part.count) - DiskState.blocks(start)
        try engine.makeRoom(room)
        guard engine.state.withLock({ $0.grant(room, to: writer) }) else { throw Self.abandoned }
        let file: DiskBodyFile
        if let open { file = open } else { file = try create() }
        do {
            try engine.files.write(ByteChunk(part), to: file.file, at: start)
        } catch {
            throw engine.failed(error)
        }
        let sums = part.withUnsafeBytes { buffer in
            stride(from: 0, to: buffer.count, by: size).map { place in
                let chunk = UnsafeRawBufferPointer(rebasing: buffer[place..<min(place + size, buffer.count)])
                return BodyPlace.checksum(chunk, file: number, chunk: (start + place) / size)
            }
        }
        engine.state.withLock { $0.rest.succeeded() }
        bytes.withLock { bytes in
            // An abandoned body has dropped its bytes meanwhile.
            guard bytes.tail.count >= part.count, bytes.flushed == start else { return }
            bytes.tail.removeFirst(part.count)
            bytes.flushed += part.count
            bytes.checksums += sums
            bytes.file = file
        }
    }

    /// Where the bytes lie once all are flushed.
    var place: BodyPlace {
        bytes.withLock { BodyPlace(file: $0.flushed == 0 ? 0 : number, checksums: $0.checksums) }
    }

    private func create() throws(StoreError) -> DiskBodyFile {
        try engine.state.withLock { state throws(StoreError) in try state.openedBody(number) }
        do {
            let file = try engine.create(engine.layout.bodyFile(number))
            return DiskBodyFile(number: number, file: file, engine: engine)
        } catch {
            engine.state.withLock { $0.closedBody(number) }
            throw engine.failed(error)
        }
    }

    private static let abandoned = StoreError(
        .abandoned,
        "The writer gave up before the body was whole; send the request again."
    )
}

/// Writes one entry into a ``DiskStore``.
final class DiskWriter: EntryWriter {
    private let engine: DiskEngine
    private let id: UInt64
    private let body: GrowingDiskBody
    /// Bytes of key, variant and description, which count towards the size of the entry.
    private let overhead: Int

    init(engine: DiskEngine, id: UInt64, overhead: Int) {
        self.engine = engine
        self.id = id
        self.overhead = overhead
        body = GrowingDiskBody(engine: engine, writer: id)
    }

    deinit {
        abandon()
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        do throws(StoreError) {
            let (id, size) = (id, overhead + body.count)
            try engine.state.withLock { state throws(StoreError) in
                try state.checkOpen()
                guard state.writers[id] != nil else { throw Self.ended }
                try state.checkSize(bytes.count > Int.max - size ? .max : size + bytes.count)
            }
            guard body.append(bytes) else { return }
            let body = body
            try await engine.threads.run(.changes) { () throws(StoreError) in try body.flush(all: false) }
        } catch {
            abandon()
            throw error
        }
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // Followers have the whole body whether or not it may be stored: it is what they asked for.
        body.finish()
        let (engine, id, body, description) = (engine, id, body, description?.kept)
        do throws(StoreError) {
            return try await engine.threads.run(.changes) { () throws(StoreError) in
                try engine.checkWriter(id)
                try body.flush(all: true)
                return try engine.commit(id, description, bodyLength: body.count, place: body.place, now: now)
            }
        } catch {
            abandon()
            throw error
        }
    }

    func abandon() {
        engine.abandonWriter(id, body: body.number)
        body.abandon()
    }

    func follow() -> any StoredBody {
        body
    }

    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
}
