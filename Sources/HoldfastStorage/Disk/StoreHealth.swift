// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Whether a store accepts calls, what it has counted, and the caller's clock; shared by all of its parts.
final class StoreHealth: Sendable {
    let counters = DiskCounters()
    private let files: any FileSystem
    private let lockFile: OpenFile
    private let state = Mutex(State())
    /// Whether the store is open and its device has not failed recently; then nobody needs to look at `state`.
    private let isHealthy = Atomic<Bool>(true)
    /// The latest instant that a caller gave, in milliseconds.
    let latestNow = Atomic<Int64>(0)

    private struct State {
        var isClosed = false
        /// Whether the directory is gone, or belongs to another store, permanently.
        var isDisplaced = false
        var breaker = DeviceCircuitBreaker()
    }

    init(files: any FileSystem, lockFile: OpenFile) {
        self.files = files
        self.lockFile = lockFile
    }

    deinit {
        if !isClosed { files.close(lockFile) }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Refuses further calls; returns false if it was closed already.
    func close() -> Bool {
        state.withLock { state in
            isHealthy.store(false, ordering: .releasing)
            defer { state.isClosed = true }
            return !state.isClosed
        }
    }

    /// Throws unless the store is open and not paused; records the caller's clock. Without a clock, this only counts down a pause.
    func admit(now: StoreInstant?) throws(StoreError) {
        if let now { note(now) }
        if isHealthy.load(ordering: .acquiring) { return }
        try state.withLock { state throws(StoreError) in
            if state.isClosed { throw StoreError.closed }
            if state.isDisplaced { throw StoreError.displaced }
            if state.breaker.admits(now: now) { return }
            throw StoreError(
                .temporarilyUnavailable,
                "The store is paused after repeated failures of the device. Treat this as a miss."
            )
        }
    }

    /// Records the caller's clock; writes only if it has changed, since every lookup calls this.
    private func note(_ now: StoreInstant) {
        if latestNow.load(ordering: .relaxed) != now.milliseconds {
            latestNow.store(now.milliseconds, ordering: .relaxed)
        }
    }

    /// Throws if the store is closed.
    func checkOpen() throws(StoreError) {
        if isHealthy.load(ordering: .acquiring) { return }
        if isClosed { throw StoreError.closed }
    }

    /// Throws if the store is closed, or its directory is gone.
    func checkInPlace() throws(StoreError) {
        try checkOpen()
        if isDisplaced { throw StoreError.displaced }
    }

    /// Whether a lookup that may be skipped is answered; this does not count down a pause.
    func answers(now: StoreInstant) -> Bool {
        note(now)
        if isHealthy.load(ordering: .acquiring) { return true }
        return state.withLock { !$0.isClosed && !$0.isDisplaced && !$0.breaker.isOpen(now: now) }
    }

    /// Makes one step on files; counts a failure of the device and throws the caller's error.
    func checked<Value>(_ step: @autoclosure () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw failed(error) }
    }

    /// Counts a failure of the device and returns the caller's error.
    func failed(_ error: FileSystemError) -> StoreError {
        counters.failures.add(1, ordering: .relaxed)
        let now = StoreInstant(milliseconds: latestNow.load(ordering: .relaxed))
        // Checked only if a name was not found: the lock file has its name as long as the directory is this store's.
        let isDisplaced = error.errno == SystemNumber.notFound && (try? files.isNamed(lockFile)) == false
        state.withLock { state in
            state.breaker.failed(now: now)
            if isDisplaced { state.isDisplaced = true }
            isHealthy.store(false, ordering: .releasing)
        }
        return isDisplaced ? StoreError.displaced : StoreError(disk: error)
    }

    /// Whether the directory is gone, or another store's: nothing is served any more, and nothing is left to remove.
    var isDisplaced: Bool { !isHealthy.load(ordering: .acquiring) && state.withLock { $0.isDisplaced } }

    /// Records a success of the device.
    func succeeded() {
        if isHealthy.load(ordering: .acquiring) { return }
        state.withLock { state in
            state.breaker.succeeded()
            isHealthy.store(!state.isClosed && !state.isDisplaced, ordering: .releasing)
        }
    }
}

/// What a store counts, without a lock.
final class DiskCounters: Sendable {
    let lookups = Atomic<Int>(0)
    let lookupsFound = Atomic<Int>(0)
    let entriesWritten = Atomic<Int>(0)
    let entriesEvicted = Atomic<Int>(0)
    let entriesRemoved = Atomic<Int>(0)
    let entriesCorrupt = Atomic<Int>(0)
    let pinsReleased = Atomic<Int>(0)
    let failures = Atomic<Int>(0)
    let bytesRead = Atomic<Int>(0)
    let bytesWritten = Atomic<Int>(0)

    var all: StoreStatistics {
        var all = StoreStatistics()
        all.lookups = lookups.load(ordering: .relaxed)
        all.lookupsFound = lookupsFound.load(ordering: .relaxed)
        all.entriesWritten = entriesWritten.load(ordering: .relaxed)
        all.entriesEvicted = entriesEvicted.load(ordering: .relaxed)
        all.entriesRemoved = entriesRemoved.load(ordering: .relaxed)
        all.entriesCorrupt = entriesCorrupt.load(ordering: .relaxed)
        all.pinsReleased = pinsReleased.load(ordering: .relaxed)
        all.failures = failures.load(ordering: .relaxed)
        all.bytesRead = bytesRead.load(ordering: .relaxed)
        all.bytesWritten = bytesWritten.load(ordering: .relaxed)
        return all
    }
}

/// A circuit breaker for the device: decides when a store that keeps failing should pause, and when to resume.
///
/// Several failures in a row open it and begin a pause. It ends at an instant of the caller's clock, or after a number of
/// refused operations, whichever comes first, so that a clock that stands still or runs backward cannot extend it forever. The
/// first failure after a pause begins another; a success ends the count.
struct DeviceCircuitBreaker: Sendable, Hashable {
    static let failuresBeforePause = 4
    static let pauseMilliseconds: Int64 = 5_000
    static let refusals = 64

    private var failuresInARow = 0
    private var pauseEnds: StoreInstant?
    private var refusalsLeft = 0

    /// Records a failure of the device.
    mutating func failed(now: StoreInstant) {
        failuresInARow = min(failuresInARow + 1, Self.failuresBeforePause)
        guard failuresInARow == Self.failuresBeforePause else { return }
        let (end, overflow) = now.milliseconds.addingReportingOverflow(Self.pauseMilliseconds)
        pauseEnds = StoreInstant(milliseconds: overflow ? .max : end)
        refusalsLeft = Self.refusals
    }

    /// Records a success of the device.
    mutating func succeeded() {
        failuresInARow = 0
        pauseEnds = nil
    }

    /// Whether an operation may use the device; one without a clock only counts down.
    mutating func admits(now: StoreInstant?) -> Bool {
        guard let end = pauseEnds else { return true }
        if refusalsLeft > 0, now.map({ $0 < end }) ?? true {
            refusalsLeft -= 1
            return false
        }
        pauseEnds = nil
        return true
    }

    /// Whether the store is paused; asking does not count down.
    func isOpen(now: StoreInstant) -> Bool {
        guard let end = pauseEnds else { return false }
        return refusalsLeft > 0 && now < end
    }
}

/// Makes one step on files, and converts a failure to the caller's error.
func disk<Value>(_ step: @autoclosure () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
    do { return try step() } catch { throw StoreError(disk: error) }
}
