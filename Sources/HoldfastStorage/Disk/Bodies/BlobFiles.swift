// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The blob files of a store: which are open, and which of these have lost their name.
///
/// A blob that is removed while someone reads it stays in the ledger until the last reader closes it.
final class BlobFiles: Sendable {
    private struct Open {
        var count = 0
        /// What it takes on the disk; 0 while it is written.
        var bytes = 0
        /// Bytes to give back at the end, once the file has lost its name.
        var freed: Int?
    }

    let files: any FileSystem
    let layout: StoreLayout
    let ledger: SpaceLedger
    private let open = Mutex<[UInt64: Open]>([:])
    /// The files opened last for reading, newest at the end: opening one again costs more than a short read.
    private let recent = Mutex<[BlobFile]>([])
    /// How many files are kept open for the next reader.
    private static let keptOpen = 48
    /// Blobs that could not be removed; they are tried again when room is needed.
    private let leftovers = Mutex<[UInt64: Int]>([:])

    init(files: any FileSystem, layout: StoreLayout, ledger: SpaceLedger) {
        self.files = files
        self.layout = layout
        self.ledger = ledger
    }

    /// Makes a blob's file.
    func create(_ number: UInt64) throws(FileSystemError) -> BlobFile {
        try open(number, bytes: 0, .create)
    }

    /// Opens a blob's file of so many `bytes` for reading, and keeps it for the next reader.
    func read(_ number: UInt64, bytes: Int) throws(FileSystemError) -> BlobFile {
        if let held = held(number) { return held }
        let file = try open(number, bytes: SpaceLedger.blocks(bytes), .read)
        let oldest = recent.withLock { recent -> BlobFile? in
            recent.append(file)
            return recent.count > Self.keptOpen ? recent.removeFirst() : nil
        }
        // Let go of outside of the lock: the last reference closes the file.
        withExtendedLifetime(oldest) {}
        return file
    }

    /// The file of a blob, if it is still open from before.
    func held(_ number: UInt64) -> BlobFile? {
        recent.withLock { recent in recent.last { $0.number == number } }
    }

    /// Closes what is kept open for readers to come: that of one blob, or all.
    func letGo(_ number: UInt64? = nil) {
        let gone = recent.withLock { recent -> [BlobFile] in
            let gone = recent.filter { number == nil || $0.number == number }
            if !gone.isEmpty { recent.removeAll { number == nil || $0.number == number } }
            return gone
        }
        withExtendedLifetime(gone) {}
    }

    /// Counts it before it is open: who removes it meanwhile must not give its bytes back.
    private func open(_ number: UInt64, bytes: Int, _ access: FileAccess) throws(FileSystemError) -> BlobFile {
        open.withLock { open in
            open[number, default: Open()].count += 1
            open[number, default: Open()].bytes = max(bytes, open[number]?.bytes ?? 0)
        }
        do throws(FileSystemError) {
            return BlobFile(number, try files.open(layout.blob(number), access), owner: self)
        } catch {
            closed(number)
            throw error
        }
    }

    /// Whether someone reads a blob now.
    func isRead(_ number: UInt64) -> Bool {
        letGo(number)
        return open.withLock { $0[number] != nil }
    }

    /// What open readers hold of blobs that have their names.
    var readBytes: Int {
        let idle = recent.withLock { recent in
            var idle: Set<UInt64> = []
            // One that nobody else holds is kept for a reader to come.
            for place in recent.indices where isKnownUniquelyReferenced(&recent[place]) {
                idle.insert(recent[place].number)
            }
            return idle
        }
        return open.withLock { open in
            open.reduce(0) { $0 + ($1.value.freed == nil && !idle.contains($1.key) ? $1.value.bytes : 0) }
        }
    }

    /// Removes a blob; its `bytes` are given back once nobody reads it.
    ///
    /// One that is gone already gave its bytes back then: nothing is given back twice.
    func remove(_ number: UInt64, bytes: Int) {
        letGo(number)
        var isGone = false
        do throws(FileSystemError) {
            try files.remove(layout.blob(number))
        } catch {
            guard error.errno == SystemNumber.notFound else {
                leftovers.withLock { $0[number] = bytes }
                return
            }
            isGone = true
        }
        leftovers.withLock { _ = $0.removeValue(forKey: number) }
        let freed = open.withLock { open -> Int in
            guard let mine = open[number] else { return isGone ? 0 : bytes }
            // Its writer knows better than its size does how much was granted.
            let freed = max(mine.freed ?? 0, bytes)
            ledger.hold(freed - (mine.freed ?? 0))
            open[number]?.freed = freed
            return 0
        }
        ledger.release(freed)
    }

    /// Tries again to remove what could not be removed.
    func retryLeftovers() {
        for (number, bytes) in leftovers.withLock({ $0 }) { remove(number, bytes: bytes) }
    }

    fileprivate func closed(_ number: UInt64) {
        let freed = open.withLock { open -> Int in
            guard var mine = open[number] else { return 0 }
            mine.count -= 1
            open[number] = mine.count > 0 ? mine : nil
            guard mine.count == 0, let freed = mine.freed else { return 0 }
            ledger.hold(-freed)
            return freed
        }
        ledger.release(freed)
    }
}

/// An open blob file; it closes when the last reader or writer drops it.
final class BlobFile: Sendable {
    let number: UInt64
    let open: OpenFile
    private let owner: BlobFiles

    fileprivate init(_ number: UInt64, _ open: OpenFile, owner: BlobFiles) {
        self.number = number
        self.open = open
        self.owner = owner
    }

    deinit {
        owner.files.close(open)
        owner.closed(number)
    }
}
