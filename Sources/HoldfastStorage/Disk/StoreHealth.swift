// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Whether a store accepts calls, what it has counted, and the caller's clock; shared by all of its parts.
final class StoreHealth: Sendable {
    let counters = DiskCounters()
    private let files: any FileSystem
    private let lockFile: OpenFile
    private let life = Mutex(DiskAvailability())
    /// Whether the store is open and its device has not failed recently; then nobody needs to look at `life`.
    private let isHealthy = Atomic<Bool>(true)
    /// The latest instant that a caller gave, in milliseconds.
    let latestNow = Atomic<Int64>(0)

    init(files: any FileSystem, lockFile: OpenFile) {
        self.files = files
        self.lockFile = lockFile
    }

    deinit {
        if !isClosed { files.close(lockFile) }
    }

    var isClosed: Bool { life.withLock { $0.isClosed } }

    /// Refuses further calls; returns false if it was closed already.
    func close() -> Bool {
        life.withLock { life in
            isHealthy.store(false, ordering: .releasing)
            return life.close()
        }
    }

    /// Throws unless the store is open and not paused; records the caller's clock.
    func admit(now: StoreInstant?) throws(StoreError) {
        if let now { note(now) }
        if isHealthy.load(ordering: .acquiring) { return }
        switch life.withLock({ $0.admits(now: now) }) {
        case .admitted: return
        case .closed: throw StoreError.closed
        case .paused:
            throw StoreError(
                .temporarilyUnavailable,
                "The store is paused after repeated failures of the device. Treat this as a miss."
            )
        case .displaced: throw StoreError.displaced
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
        if life.withLock({ $0.isClosed }) { throw StoreError.closed }
    }

    /// Whether a lookup that may be skipped is answered.
    func answers(now: StoreInstant) -> Bool {
        note(now)
        return isHealthy.load(ordering: .acquiring) || life.withLock { $0.answersPeeks(now: now) }
    }

    /// Counts a failure of the device and returns the caller's error.
    func failed(_ error: FileSystemError) -> StoreError {
        counters.failures.add(1, ordering: .relaxed)
        let now = StoreInstant(milliseconds: latestNow.load(ordering: .relaxed))
        // Checked only if a name was not found: the lock file has its name as long as the directory is this store's.
        let isDisplaced = error.errno == SystemNumber.notFound && (try? files.isNamed(lockFile)) == false
        life.withLock { life in
            life.failed(now: now)
            if isDisplaced { life.displace() }
            isHealthy.store(false, ordering: .releasing)
        }
        return isDisplaced ? StoreError.displaced : StoreError(disk: error)
    }

    /// Whether the directory is gone, or another store's: nothing is served any more, and nothing is left to remove.
    var isDisplaced: Bool { !isHealthy.load(ordering: .acquiring) && life.withLock { $0.isDisplaced } }

    /// Records a success of the device.
    func succeeded() {
        if isHealthy.load(ordering: .acquiring) { return }
        life.withLock { life in
            life.succeeded()
            isHealthy.store(!life.isClosed && !life.isDisplaced, ordering: .releasing)
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

/// Whether a store accepts calls: open, paused after failures, or closed.
struct DiskAvailability: Sendable {
    enum Answer: Sendable {
        case admitted
        case paused
        /// The directory is gone, or belongs to another store.
        case displaced
        case closed
    }

    private(set) var isClosed = false
    private(set) var isDisplaced = false
    private var breaker = DeviceCircuitBreaker()

    /// Whether a call may proceed; one without a clock only counts down the pause.
    mutating func admits(now: StoreInstant?) -> Answer {
        if isClosed { return .closed }
        if isDisplaced { return .displaced }
        return breaker.admits(now: now) ? .admitted : .paused
    }

    /// Whether a lookup that may be skipped is answered; it does not count down the pause.
    func answersPeeks(now: StoreInstant) -> Bool {
        !isClosed && !isDisplaced && !breaker.isOpen(now: now)
    }

    /// Records that the directory no longer belongs to this store, permanently.
    mutating func displace() {
        isDisplaced = true
    }

    mutating func failed(now: StoreInstant) {
        breaker.failed(now: now)
    }

    mutating func succeeded() {
        breaker.succeeded()
    }

    /// - Returns: false if it was closed already.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
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

/// Runs steps on files, and converts a failure to the caller's error.
func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
    do { return try step() } catch { throw StoreError(disk: error) }
}
