// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Does what the calls of a ``DiskStore`` ask: judges by the ``DiskState``, works on the files.
///
/// Methods marked *changes* run on the thread of that name only, so each sees the files as the one before left them.
final class DiskEngine: Sendable {
    let files: any FileSystem
    let threads: IOThreads
    let state: Mutex<DiskState>
    let layout: DiskLayout
    private let lockFile: OpenFile

    init(files: any FileSystem, threads: IOThreads, state: DiskState, lockFile: OpenFile) {
        self.files = files
        self.threads = threads
        self.lockFile = lockFile
        layout = state.layout
        self.state = Mutex(state)
    }

    deinit {
        if !state.withLock({ $0.isClosed }) { files.close(lockFile) }
    }

    /// Changes: replaces the group of a key by the one that `plan` makes, in one rename.
    ///
    /// - Parameters:
    ///   - plan: makes the group from the state, which may change until the room for it is found: it is asked twice. Nil:
    ///     nothing is to be done.
    ///   - finish: runs in the same lock in which the group appears.
    /// - Returns: false when nothing was to be done.
    @discardableResult
    func update(
        _ key: StoreKey,
        plan: (inout DiskState) throws(StoreError) -> [KeyFile.Record]?,
        finish: (inout DiskState) -> Void = { _ in }
    ) throws(StoreError) -> Bool {
        guard let sketch = try state.withLock({ state throws(StoreError) in try plan(&state) }) else { return false }
        let size = KeyFile.encode(key, sketch, file: 0).count
        guard size <= KeyFile.maximumSize else {
            throw StoreError(.tooLarge, "The variants of this key have more metadata than one key may have.")
        }
        let room = DiskState.blocks(size)
        try makeRoom(room)
        let number: UInt64
        let records: [KeyFile.Record]
        do {
            let planned = try state.withLock { state throws(StoreError) in
                (try plan(&state), state.keyFile(of: key) ?? FileNumber.random())
            }
            guard let planned0 = planned.0 else {
                state.withLock { $0.release(room) }
                return false
            }
            (records, number) = (planned0, planned.1)
        } catch {
            state.withLock { $0.release(room) }
            throw error
        }
        let bytes = KeyFile.encode(key, records, file: number)
        try replaceFile(layout.keyFile(number), with: bytes, reserved: room)
        let leaving = state.withLock { state in
            state.release(room)
            finish(&state)
            state.rest.succeeded()
            return state.install(key, records, file: number, size: bytes.count)
        }
        remove(leaving)
        return true
    }

    /// Changes: finishes on the disk what ``DiskState/take(_:where:)`` did in memory.
    ///
    /// - Throws: `.io` when a key's file could not be removed, so that its entries may come back when the store is opened
    ///   again.
    func finish(_ taken: DiskState.Taken, of key: StoreKey) throws(StoreError) {
        var files = taken.files
        if taken.isPartial {
            do {
                try update(key) { state throws(StoreError) in
                    let records = state.index.records(of: key)
                    return records.isEmpty ? nil : records
                }
            } catch {
                // What must go goes, even if its neighbours have to go with it.
                files = state.withLock { $0.take(key) { _ in true } }.files + files
            }
        }
        try removeForGood(files)
    }

    /// Changes: reserves bytes, evicting what has to leave for them.
    func makeRoom(_ count: Int) throws(StoreError) {
        // Bytes that only wait for their file to be closed are had for nothing.
        closeDropped()
        var hasRetried = false
        while true {
            switch state.withLock({ $0.reserve(count) }) {
            case .reserved:
                return
            case .remove(let taken):
                remove(taken.files)
            case .full:
                if hasRetried || !retryLeftovers() {
                    throw StoreError(.noSpace, "What is pinned, written or read leaves no room; try again later.")
                }
                hasRetried = true
            }
        }
    }

    /// Changes: removes files; one that cannot be removed stays counted and is tried again later.
    ///
    /// - Returns: the first failure.
    @discardableResult
    func remove(_ leaving: [LeavingFile]) -> FileSystemError? {
        var failure: FileSystemError?
        for file in leaving {
            do {
                try files.removeIfThere(file.path)
                state.withLock { $0.removed(file) }
            } catch {
                failure = failure ?? error
                state.withLock { state in
                    state.failed()
                    state.leftovers.append(file)
                }
            }
        }
        return failure
    }

    private func removeForGood(_ leaving: [LeavingFile]) throws(StoreError) {
        for file in leaving {
            guard let failure = remove([file]), file.body == nil else { continue }
            // An emptied key file is as good as none: nothing in it can come back.
            do {
                let open = try files.open(file.path, .readWrite)
                defer { files.close(open) }
                try files.truncate(open, to: 0)
            } catch {
                throw StoreError(
                    .io,
                    "The removal holds until the store is opened again; make the directory writable and repeat it.",
                    cause: failure
                )
            }
        }
    }

    /// Changes: closes the bodies that nobody uses any more.
    func closeDropped() {
        let dropped = state.withLock { state in
            let dropped = state.dropped
            state.dropped = []
            return dropped
        }
        for file in dropped {
            files.close(file.file)
            state.withLock { $0.closedBody(file.body) }
        }
    }

    /// Changes: tries once more to remove what could not be removed; false when there was nothing of that kind.
    @discardableResult
    func retryLeftovers() -> Bool {
        let leftovers = state.withLock { state in
            let leftovers = state.leftovers
            state.leftovers = []
            return leftovers
        }
        remove(leftovers)
        return !leftovers.isEmpty
    }

    /// Changes: writes a file under another name and renames it; `reserved` bytes are given back when that fails.
    private func replaceFile(_ path: String, with bytes: [UInt8], reserved: Int) throws(StoreError) {
        let temporary = layout.temporaryFile(FileNumber.random())
        do throws(FileSystemError) {
            let file = try create(temporary)
            defer { files.close(file) }
            try files.write(ByteChunk(bytes), to: file, at: 0)
            try files.rename(temporary, to: path)
        } catch {
            let failure = failed(error)
            remove([LeavingFile(path: temporary, cost: reserved)])
            throw failure
        }
    }

    /// Changes: makes a file, and its directory where that has vanished.
    func create(_ path: String) throws(FileSystemError) -> OpenFile {
        do {
            return try files.open(path, .create)
        } catch {
            guard error.errno == SystemNumber.notFound else { throw error }
            for directory in [layout.keys, layout.bodies] { try files.createDirectoryIfMissing(directory) }
            return try files.open(path, .create)
        }
    }

    /// Counts a refusal of the device and tells what it means to a caller.
    func failed(_ error: FileSystemError) -> StoreError {
        state.withLock { $0.failed() }
        return StoreError(disk: error)
    }

    /// Ends the store: what is left is removed as far as it can be, the lock released.
    func close() async {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        guard isFirst else { return }
        _ = try? await threads.run(.changes, isUrgent: true) { [self] in
            retryLeftovers()
            let stored = state.withLock { Set($0.index.allRecords.map(\.body.file)) }
            for name in (try? files.list(layout.bodies)) ?? [] {
                let number = FileNumber.number(in: name, suffix: DiskLayout.bodySuffix)
                if let number, !stored.contains(number) { try? files.remove(layout.bodyFile(number)) }
            }
            files.close(lockFile)
        }
    }
}
