// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Whether a store takes calls, what it counted, and the caller's clock: what each of its parts asks and tells.
final class StoreHealth: Sendable {
    let counters = DiskCounters()
    private let files: any FileSystem
    private let lockFile: OpenFile
    private let life = Mutex(DiskLife())
    /// Whether the store is open and its device has not failed lately: then nobody need look at `life`.
    private let isCalm = Atomic<Bool>(true)
    /// The last instant a caller named, in milliseconds.
    let latestNow = Atomic<Int64>(0)

    init(files: any FileSystem, lockFile: OpenFile) {
        self.files = files
        self.lockFile = lockFile
    }

    deinit {
        if !isClosed { files.close(lockFile) }
    }

    var isClosed: Bool { life.withLock { $0.isClosed } }

    /// Lets no call in any more; false where it was closed already.
    func close() -> Bool {
        life.withLock { life in
            isCalm.store(false, ordering: .releasing)
            return life.close()
        }
    }

    /// Throws unless the store is open and not at rest; notes the caller's clock.
    func admit(now: StoreInstant?) throws(StoreError) {
        if let now { note(now) }
        if isCalm.load(ordering: .acquiring) { return }
        switch life.withLock({ $0.admits(now: now) }) {
        case .admitted: return
        case .closed: throw StoreError.closed
        case .resting:
            throw StoreError(
                .resting,
                "The store is paused after repeated failures of the device. Treat this as a miss."
            )
        case .displaced: throw StoreError.displaced
        }
    }

    /// Notes the caller's clock; written only where it has gone on, since every look-up comes by.
    private func note(_ now: StoreInstant) {
        if latestNow.load(ordering: .relaxed) != now.milliseconds {
            latestNow.store(now.milliseconds, ordering: .relaxed)
        }
    }

    /// Throws once the store is closed.
    func checkOpen() throws(StoreError) {
        if isCalm.load(ordering: .acquiring) { return }
        if life.withLock({ $0.isClosed }) { throw StoreError.closed }
    }

    /// Whether a question that may go unanswered is answered.
    func answers(now: StoreInstant) -> Bool {
        note(now)
        return isCalm.load(ordering: .acquiring) || life.withLock { $0.peeks(now: now) }
    }

    /// Counts a refusal of the device and says what it means to the caller.
    func failed(_ error: FileSystemError) -> StoreError {
        counters.failures.add(1, ordering: .relaxed)
        let now = StoreInstant(milliseconds: latestNow.load(ordering: .relaxed))
        // Asked only where a name led nowhere: the lock has its name for as long as the directory is this store's.
        let isDisplaced = error.errno == SystemNumber.notFound && (try? files.isNamed(lockFile)) == false
        life.withLock { life in
            life.failed(now: now)
            if isDisplaced { life.displace() }
            isCalm.store(false, ordering: .releasing)
        }
        return isDisplaced ? StoreError.displaced : StoreError(disk: error)
    }

    /// Whether the directory is gone, or another store's: nothing is served any more, and there is nothing left to remove.
    var isDisplaced: Bool { !isCalm.load(ordering: .acquiring) && life.withLock { $0.isDisplaced } }

    /// Notes that the device did as it was told.
    func succeeded() {
        if isCalm.load(ordering: .acquiring) { return }
        life.withLock { life in
            life.succeeded()
            isCalm.store(!life.isClosed && !life.isDisplaced, ordering: .releasing)
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

/// Whether a store takes calls: open, at rest after failures, or closed.
struct DiskLife: Sendable {
    enum Verdict: Sendable {
        case admitted
        case resting
        /// The directory is gone, or another store's.
        case displaced
        case closed
    }

    private(set) var isClosed = false
    private(set) var isDisplaced = false
    private var rest = RestDecision()

    /// Whether a call may go on; one without a clock only counts down a rest.
    mutating func admits(now: StoreInstant?) -> Verdict {
        if isClosed { return .closed }
        if isDisplaced { return .displaced }
        return rest.admits(now: now) ? .admitted : .resting
    }

    /// Whether a question that may go unanswered is answered; it does not count down a rest.
    func peeks(now: StoreInstant) -> Bool {
        !isClosed && !isDisplaced && !rest.rests(now: now)
    }

    /// Notes that the directory is not this store's any more, for good.
    mutating func displace() {
        isDisplaced = true
    }

    mutating func failed(now: StoreInstant) {
        rest.failed(now: now)
    }

    mutating func succeeded() {
        rest.succeeded()
    }

    /// - Returns: false when it was closed already.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }
}

/// Decides when a store that keeps failing should rest, and when it has rested long enough.
///
/// Several failures in a row begin a rest. It ends at an instant of the caller's clock, or after a number of refused
/// operations, whichever comes first, so that a clock that stands still or runs backwards cannot hold it for ever. The first
/// failure after a rest begins another; a success ends the count.
struct RestDecision: Sendable, Hashable {
    static let failuresBeforeRest = 4
    static let restMilliseconds: Int64 = 5_000
    static let refusals = 64

    private var failuresInARow = 0
    private var restEnds: StoreInstant?
    private var refusalsLeft = 0

    /// Notes that the device refused an operation.
    mutating func failed(now: StoreInstant) {
        failuresInARow = min(failuresInARow + 1, Self.failuresBeforeRest)
        guard failuresInARow == Self.failuresBeforeRest else { return }
        let (end, overflow) = now.milliseconds.addingReportingOverflow(Self.restMilliseconds)
        restEnds = StoreInstant(milliseconds: overflow ? .max : end)
        refusalsLeft = Self.refusals
    }

    /// Notes that the device did as it was told.
    mutating func succeeded() {
        failuresInARow = 0
        restEnds = nil
    }

    /// Whether an operation may go to the device; one without a clock only counts down.
    mutating func admits(now: StoreInstant?) -> Bool {
        guard let end = restEnds else { return true }
        if refusalsLeft > 0, now.map({ $0 < end }) ?? true {
            refusalsLeft -= 1
            return false
        }
        restEnds = nil
        return true
    }

    /// Whether the store rests, without counting the question.
    func rests(now: StoreInstant) -> Bool {
        guard let end = restEnds else { return false }
        return refusalsLeft > 0 && now < end
    }
}

/// Runs steps on files, and says what a refusal means to the caller.
func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
    do { return try step() } catch { throw StoreError(disk: error) }
}
