// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The blob files of a store: which are open, and which of these have lost their name.
///
/// A blob that is removed while someone reads it stays in the ledger until the last reader closes it.
final class BlobFiles: Sendable {
    private struct Open {
        var count = 0
        /// Bytes to give back at the end, once the file has lost its name.
        var freed: Int?
    }

    let files: any FileSystem
    let layout: StoreLayout
    let ledger: SpaceLedger
    private let open = Mutex<[UInt64: Open]>([:])
    /// Blobs that could not be removed; they are tried again when room is needed.
    private let leftovers = Mutex<[UInt64: Int]>([:])

    init(files: any FileSystem, layout: StoreLayout, ledger: SpaceLedger) {
        self.files = files
        self.layout = layout
        self.ledger = ledger
    }

    /// Makes a blob's file.
    func create(_ number: UInt64) throws(FileSystemError) -> BlobFile {
        try open(number, .create)
    }

    /// Opens a blob's file for reading.
    func read(_ number: UInt64) throws(FileSystemError) -> BlobFile {
        try open(number, .read)
    }

    /// Counts it before it is open: who removes it meanwhile must not give its bytes back.
    private func open(_ number: UInt64, _ access: FileAccess) throws(FileSystemError) -> BlobFile {
        open.withLock { $0[number, default: Open()].count += 1 }
        do throws(FileSystemError) {
            return BlobFile(number, try files.open(layout.blob(number), access), owner: self)
        } catch {
            closed(number)
            throw error
        }
    }

    /// Removes a blob; its `bytes` are given back once nobody reads it.
    ///
    /// One that is gone already gave its bytes back then: nothing is given back twice.
    func remove(_ number: UInt64, bytes: Int) {
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
            open[number]?.freed = max(mine.freed ?? 0, bytes)
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
            return mine.count > 0 ? 0 : mine.freed ?? 0
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
