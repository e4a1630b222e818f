// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The layout of a blob's chunks in its file.
struct BlobShape: Sendable, Hashable {
    let number: UInt64
    /// The plain bytes of every chunk except the last.
    let plainPerChunk: Int
    /// The plain bytes of the whole, as far as they are in the file.
    let length: Int
    /// Whether the last chunk that `length` covers is the blob's last.
    let isWhole: Bool

    private var overhead: Int { BlobChunk.payload - plainPerChunk }

    /// The size of the file.
    var storedBytes: Int { BlobChunk.storedSize(plain: length, perChunk: plainPerChunk, overhead: overhead) }

    /// How many chunks there are.
    var chunks: Int { length / plainPerChunk + (length % plainPerChunk == 0 ? 0 : 1) }

    /// The plain bytes of a chunk.
    func plainCount(_ index: Int) -> Int {
        min(plainPerChunk, length - index * plainPerChunk)
    }

    /// The bytes of a chunk in the file, including its trailer.
    func storedCount(_ index: Int) -> Int {
        plainCount(index) + overhead + BlobChunk.trailerSize
    }
}

extension BlobShape {
    /// The shape of the complete blob that a committed record names.
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
    let host: any BlobHost
    /// Whether sealed chunks are unsealed; otherwise, only their checksums are checked.
    var opens = true

    /// The most chunks in one read: a mebibyte plus their trailers.
    static let window = 17

    /// The plain bytes of the chunks in a range, from the page cache if it has them.
    ///
    /// From there, each chunk is read directly to its place and checked while the processor's cache has it; its trailer is where
    /// the next chunk goes. The device is asked for all of them at once.
    ///
    /// - Returns: nil if that would have to wait for the device and `waits` is false.
    func read(_ shape: BlobShape, of file: BlobFile, chunks: Range<Int>, waits: Bool) throws(StoreError) -> ByteChunk? {
        let last = chunks.upperBound - 1
        let stored = (last - chunks.lowerBound) * BlobChunk.stride + shape.storedCount(last)
        var failure: StoreError?
        var isThere = true
        let bytes = [UInt8](unsafeUninitializedCapacity: stored) { room, filled in
            let room = UnsafeMutableRawBufferPointer(start: room.baseAddress, count: stored)
            do throws(StoreError) {
                if waits { isThere = try read(room, of: file, from: chunks.lowerBound * BlobChunk.stride, waits: true) }
                for index in chunks where isThere {
                    let count = shape.storedCount(index)
                    let start = waits ? (index - chunks.lowerBound) * BlobChunk.stride : filled
                    let part = UnsafeMutableRawBufferPointer(rebasing: room[start..<(start + count)])
                    if !waits { isThere = try read(part, of: file, from: index * BlobChunk.stride, waits: false) }
                    guard isThere else { break }
                    guard try open(part, of: shape, index: index) else { throw damaged(file) }
                    if start != filled {
                        let plain = UnsafeRawBufferPointer(rebasing: part.prefix(shape.plainCount(index)))
                        UnsafeMutableRawBufferPointer(rebasing: room[filled...]).copyMemory(from: plain)
                    }
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

    /// Reads a whole blob and checks it.
    func check(_ source: RecordSource, of file: BlobFile) throws(StoreError) {
        let shape = BlobShape(source.header)
        for first in stride(from: 0, to: shape.chunks, by: Self.window) {
            _ = try read(shape, of: file, chunks: first..<min(shape.chunks, first + Self.window), waits: true)
        }
    }

    /// Fills `part`; false if that would have to wait for the device.
    private func read(
        _ part: UnsafeMutableRawBufferPointer,
        of file: BlobFile,
        from offset: Int,
        waits: Bool
    ) throws(StoreError) -> Bool {
        let got = try host.checked(try host.files.read(file.open, from: offset, into: part, waits: waits))
        guard let got else { return false }
        host.succeeded()
        guard got == part.count else { throw damaged(file) }
        return true
    }

    /// What a damaged chunk means: a file without a name was cut by the store that owns it.
    private func damaged(_ file: BlobFile) -> StoreError {
        (try? host.files.isNamed(file.open)) == false ? StoreError.gone : StoreError.damaged
    }

    /// Checks a chunk, and puts its plain bytes in place of the stored ones; false if it is damaged.
    private func open(_ part: UnsafeMutableRawBufferPointer, of shape: BlobShape, index: Int) throws(StoreError) -> Bool
    {
        let stored = UnsafeRawBufferPointer(part)
        guard let count = BlobChunk.check(stored, number: shape.number, index: index) else { return false }
        let keyID: UInt32 = stored.number(at: count + 12)
        guard opens else { return true }
        // With a seal, a chunk in clear may come from anybody, like an entry in clear.
        guard keyID != 0 else { return host.seal == nil }
        guard let seal = host.seal else {
            throw StoreError(.sealed, "The body is sealed; open the store with the key it was sealed with.")
        }
        let isLast = shape.isWhole && index == shape.chunks - 1
        let context = SealedPart.chunk(blob: shape.number, index: index, isLast: isLast)
        let plain = try seal.open(ByteChunk(copying: stored[0..<count]), keyID: keyID, context: context)
        guard plain.count == shape.plainCount(index) else { return false }
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
        /// How many chunks the next read takes; grows while reads continue where the last one ended.
        var window = 2
    }

    private let host: any BlobHost
    private let source: RecordSource
    private let shape: BlobShape
    private let file: BlobFile
    private let recent = Mutex(Recent())

    init(host: any BlobHost, source: RecordSource, file: BlobFile) {
        self.host = host
        self.source = source
        self.file = file
        shape = BlobShape(source.header)
    }

    var length: Int? { shape.length }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let offset = max(0, offset)
        guard offset < shape.length, count > 0 else { return ByteChunk() }
        if let bytes = held(offset, count: count) { return bytes }
        let first = offset / shape.plainPerChunk
        let window = recent.withLock { recent in
            recent.window = first == recent.chunks.upperBound ? min(BlobReader.window, recent.window * 2) : 2
            return recent.window
        }
        // As many chunks as requested, and some in advance for a reader that continues.
        let asked = min(BlobReader.window, count / shape.plainPerChunk + 1)
        let chunks = first..<min(shape.chunks, first + max(window, asked))
        do throws(StoreError) {
            let reader = BlobReader(host: host)
            var bytes = try reader.read(shape, of: file, chunks: chunks, waits: false)
            if bytes == nil {
                bytes = try await host.readBody { [shape, file] () throws(StoreError) in
                    try reader.read(shape, of: file, chunks: chunks, waits: true)
                }
            }
            let read = bytes ?? ByteChunk()
            recent.withLock { recent in
                recent.chunks = chunks
                recent.bytes = read
            }
            // From the bytes just read, not from the kept ones, which another reader may have replaced meanwhile.
            return part(of: read, from: offset - first * shape.plainPerChunk, count)
        } catch {
            if error.code == .corrupt { host.dropDamaged(source) }
            throw error
        }
    }

    private func held(_ offset: Int, count: Int) -> ByteChunk? {
        let index = offset / shape.plainPerChunk
        let (chunks, bytes) = recent.withLock { ($0.chunks, $0.bytes) }
        guard chunks.contains(index) else { return nil }
        return part(of: bytes, from: offset - chunks.lowerBound * shape.plainPerChunk, count)
    }

    private func part(of bytes: ByteChunk, from start: Int, _ count: Int) -> ByteChunk {
        guard start < bytes.count else { return ByteChunk() }
        let part = bytes[start..<(start + min(count, bytes.count - start))]
        host.counters.bytesRead.add(part.count, ordering: .relaxed)
        return part
    }
}

/// What a body in a blob file needs from its store.
protocol BlobHost: AnyObject, Sendable {
    var files: any FileSystem { get }
    var seal: (any StoreSeal)? { get }
    var counters: DiskCounters { get }
    var threads: IOThreads { get }

    /// Counts a failure of the device and returns its error for the caller.
    func failed(_ error: FileSystemError) -> StoreError

    /// Records a success of the device.
    func succeeded()

    /// Handles an entry whose body is damaged.
    ///
    /// - Returns: whether the entry was still there unchanged.
    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool
}

extension BlobHost {
    /// Makes one step on files; counts a failure of the device and throws the caller's error.
    func checked<Value>(_ step: @autoclosure () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw failed(error) }
    }

    /// Runs a read of an open body on the thread of reads; directly once the store is closed, since bodies outlive it.
    func readBody<Value: Sendable>(
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        do throws(StoreError) {
            return try await threads.run(.reads, work)
        } catch {
            guard error.code == .closed else { throw error }
            return try work()
        }
    }
}

/// The blob files of a store: which are open, and which of these have lost their name.
///
/// A blob that is removed while someone reads it counts until the last reader closes it.
final class BlobFiles: Sendable {
    private struct Open {
        var count = 0
        /// Its bytes on the disk; 0 while it is written.
        var bytes = 0
        /// The bytes to release at the end, once the file has lost its name.
        var freed: Int?
        /// The handle that then truncates it; nil if the device gave none.
        var truncationHandle: OpenFile?
    }

    let files: any FileSystem
    let layout: StoreLayout
    let quota: SpaceQuota
    private let open = Mutex<[UInt64: Open]>([:])
    /// The files last opened for reading, newest at the end: opening one again costs more than a short read.
    private let recent = Mutex<[BlobFile]>([])
    /// How many files are kept open for the next reader.
    static let keptOpen = 48
    /// Blobs that could not be removed; they are tried again if room is needed.
    private let leftovers = Mutex<[UInt64: Int]>([:])

    init(files: any FileSystem, layout: StoreLayout, quota: SpaceQuota) {
        self.files = files
        self.layout = layout
        self.quota = quota
    }

    /// Makes a blob's file.
    func create(_ number: UInt64) throws(FileSystemError) -> BlobFile {
        try open(number, bytes: 0, access: .create)
    }

    /// Opens a blob's file of this many `bytes` for reading, and keeps it for the next reader.
    func read(_ number: UInt64, bytes: Int) throws(FileSystemError) -> BlobFile {
        if let held = cached(number) { return held }
        let file = try open(number, bytes: SpaceQuota.blocks(bytes), access: .read)
        let oldest = recent.withLock { recent -> BlobFile? in
            recent.append(file)
            return recent.count > Self.keptOpen ? recent.removeFirst() : nil
        }
        // Released outside the lock: the last reference closes the file.
        withExtendedLifetime(oldest) {}
        // Removed meanwhile: if it was kept here, its bytes would count until many other files were opened.
        if open.withLock({ $0[number]?.freed != nil }) { closeCached(number) }
        return file
    }

    /// The file of a blob, if it is still open.
    func cached(_ number: UInt64) -> BlobFile? {
        recent.withLock { recent in recent.last { $0.number == number } }
    }

    /// Closes the files kept open for later readers: that of one blob, or all.
    func closeCached(_ number: UInt64? = nil) {
        let gone = recent.withLock { recent -> [BlobFile] in
            let gone = recent.filter { number == nil || $0.number == number }
            if !gone.isEmpty { recent.removeAll { number == nil || $0.number == number } }
            return gone
        }
        withExtendedLifetime(gone) {}
    }

    /// Counts it before it is open, so that a concurrent removal does not release its bytes.
    private func open(_ number: UInt64, bytes: Int, access: FileAccess) throws(FileSystemError) -> BlobFile {
        open.withLock { open in
            open[number, default: Open()].count += 1
            open[number, default: Open()].bytes = max(bytes, open[number]?.bytes ?? 0)
        }
        do throws(FileSystemError) {
            return BlobFile(number, open: try files.open(layout.blob(number), access), owner: self)
        } catch {
            closed(number)
            throw error
        }
    }

    /// Whether someone reads a blob now.
    func isRead(_ number: UInt64) -> Bool {
        closeCached(number)
        return open.withLock { $0[number] != nil }
    }

    /// The bytes of blobs that open readers hold and that have their names.
    var readBytes: Int {
        let idle = recent.withLock { recent in
            var idle: Set<UInt64> = []
            // A file with no other owner is only kept for a later reader.
            for place in recent.indices where isKnownUniquelyReferenced(&recent[place]) {
                idle.insert(recent[place].number)
            }
            return idle
        }
        return open.withLock { open in
            open.reduce(0) { $0 + ($1.value.freed == nil && !idle.contains($1.key) ? $1.value.bytes : 0) }
        }
    }

    /// Removes a blob; its `bytes` are released once nobody reads it.
    ///
    /// One that is already gone has released its bytes: nothing is released twice. Its file is truncated first: another process may
    /// have it open, as a reader or because it was started while this one had it open, and would keep its bytes on the disk.
    func remove(_ number: UInt64, bytes: Int) {
        closeCached(number)
        let path = layout.blob(number)
        var truncationHandle = try? files.open(path, .write)
        var isGone = false
        do throws(FileSystemError) {
            try files.remove(path)
        } catch {
            guard error.errno == SystemNumber.notFound else {
                if let truncationHandle { files.close(truncationHandle) }
                leftovers.withLock { $0[number] = bytes }
                return
            }
            isGone = true
        }
        leftovers.withLock { _ = $0.removeValue(forKey: number) }
        let freed = open.withLock { open -> Int in
            guard let mine = open[number] else { return isGone ? 0 : bytes }
            // Its writer knows better than its size how much was granted.
            let freed = max(mine.freed ?? 0, bytes)
            quota.hold(freed - (mine.freed ?? 0))
            open[number]?.freed = freed
            if mine.truncationHandle == nil { open[number]?.truncationHandle = truncationHandle.take() }
            return 0
        }
        // Again: a reader may have opened it since, and kept it for later ones.
        closeCached(number)
        erase(truncationHandle)
        quota.release(freed)
    }

    /// Truncates a file without a name, even if another process has it open, and closes it.
    private func erase(_ file: OpenFile?) {
        guard let file else { return }
        try? files.truncate(file, to: 0)
        files.close(file)
    }

    /// Tries again to remove the blobs that could not be removed.
    func retryLeftovers() {
        for (number, bytes) in leftovers.withLock({ $0 }) { remove(number, bytes: bytes) }
    }

    fileprivate func closed(_ number: UInt64) {
        let (freed, truncationHandle) = open.withLock { open -> (Int, OpenFile?) in
            guard var mine = open[number] else { return (0, nil) }
            mine.count -= 1
            open[number] = mine.count > 0 ? mine : nil
            guard mine.count == 0, let freed = mine.freed else { return (0, nil) }
            quota.hold(-freed)
            return (freed, mine.truncationHandle)
        }
        erase(truncationHandle)
        quota.release(freed)
    }
}

/// An open blob file; it closes when the last reader or writer drops it.
final class BlobFile: Sendable {
    let number: UInt64
    let open: OpenFile
    private let owner: BlobFiles

    fileprivate init(_ number: UInt64, open: OpenFile, owner: BlobFiles) {
        self.number = number
        self.open = open
        self.owner = owner
    }

    deinit {
        owner.files.close(open)
        owner.closed(number)
    }
}
