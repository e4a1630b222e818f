// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What all parts of a ``DiskStore`` share: the index, the log, the ledger of bytes, the order of things.
///
/// Locks are taken in this order and never across a file call: shard of the index, orders, log. Methods marked *changes*
/// run on the thread of that name only.
final class DiskEngine: Sendable {
    let files: any FileSystem
    let threads: IOThreads
    let layout: StoreLayout
    let geometry: Geometry
    let maximumEntrySize: Int
    let seed: UInt64
    let hashing: KeyHashing
    let seal: (any StoreSeal)?
    let isSealed: Bool
    /// What sealing adds, 0 without a seal: asked for each record.
    let sealOverhead: Int
    let index: ShardedIndex
    let slots: SegmentSlots
    let ledger: SpaceLedger
    let log: Mutex<LogState>
    let orders: SequenceAllocator
    let pins: PinBook
    let blobs: BlobFiles
    let counters = DiskCounters()
    let life: Mutex<DiskLife>
    /// Whether the store is open and its device has not failed lately: then nobody need look at ``life``.
    let isCalm = Atomic<Bool>(true)
    /// The last instant a caller named, in milliseconds.
    let latestNow = Atomic<Int64>(0)
    /// Segments of a lower epoch are void.
    let epoch: Atomic<UInt64>
    /// Entries of a lower order must be revalidated.
    let suspectBefore: UInt64
    /// FORMAT: what must be known of the directory, and which segments it must have.
    let manifest: Manifest
    let lockFile: OpenFile
    let inPlace = InPlaceDecision()
    /// What a reclaim carries; for the thread of changes alone.
    let judge: Mutex<CarryJudge>
    let lastTable = Mutex<KeptTable?>(nil)
    let trials: SharedTrials
    let owed: Mutex<PendingTombstones>
    let notesUnderWay = NotesUnderWay()
    /// Whether a segment is being reclaimed that is not gone yet.
    let isReclaiming = Atomic<Bool>(false)
    /// Whether the thread of syncs has an order that it has not begun.
    let isSyncOrdered = Atomic<Bool>(false)
    /// Whether room is about to be made for the next blob.
    let isMakingRoom = Atomic<Bool>(false)
    /// Whether what marks have taken is being removed one by one.
    let isSweepingMarks = Atomic<Bool>(false)
    /// Blobs up to this number went with a purge of all.
    let blobsPurgedUpTo = Atomic<UInt64>(0)
    /// Entries gone whose blobs are to go.
    let releases = Mutex<[GoneRow]>([])

    init(
        _ opened: consuming OpenedStore,
        threads: IOThreads,
        seal: (any StoreSeal)?
    ) {
        files = opened.files
        self.threads = threads
        layout = opened.layout
        geometry = opened.geometry
        maximumEntrySize = opened.ledger.budget.entry
        seed = opened.manifest.content.format.hashSeed
        hashing = KeyHashing(seed: opened.manifest.content.format.hashSeed)
        self.seal = seal
        sealOverhead = seal?.overhead ?? 0
        isSealed = seal != nil
        index = opened.index
        slots = opened.slots
        ledger = opened.ledger
        log = Mutex(opened.log)
        orders = opened.orders
        pins = PinBook(capacity: opened.ledger.budget.pinned)
        blobs = opened.blobs
        life = Mutex(DiskLife())
        epoch = Atomic(opened.manifest.content.format.epoch)
        suspectBefore = opened.suspectBefore
        manifest = opened.manifest
        lockFile = opened.lockFile
        owed = Mutex(PendingTombstones(notes: opened.owed))
        judge = Mutex(CarryJudge(capacity: opened.geometry.capacity, segmentSize: opened.geometry.segmentSize))
        trials = SharedTrials(seed: opened.manifest.content.format.hashSeed)
        counters.entriesCorrupt.store(opened.damaged, ordering: .relaxed)
    }

    deinit {
        // They hold each other.
        blobs.letGo()
        if !life.withLock({ $0.isClosed }) { files.close(lockFile) }
    }

    /// Throws unless the store is open and not at rest; notes the caller's clock.
    func admit(now: StoreInstant?) throws(StoreError) {
        if let now { note(now) }
        if isCalm.load(ordering: .acquiring) { return }
        switch life.withLock({ $0.admits(now: now) }) {
        case .admitted: return
        case .closed: throw StoreError(.closed, "The store is closed; open a new one.")
        case .resting:
            throw StoreError(.resting, "The store rests after repeated failures of the device; treat this as a miss.")
        case .displaced: throw Self.displaced
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
        if life.withLock({ $0.isClosed }) { throw StoreError(.closed, "The store is closed; open a new one.") }
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
        return isDisplaced ? Self.displaced : StoreError(disk: error)
    }

    /// Whether the directory is gone, or another store's: nothing is served any more, and there is nothing left to remove.
    var isDisplaced: Bool { !isCalm.load(ordering: .acquiring) && life.withLock { $0.isDisplaced } }

    private static let displaced = StoreError(
        .resting,
        "The directory was removed while the store had it open; treat this as a miss, and open the store again."
    )

    /// Notes that the device did as it was told.
    func succeeded() {
        if isCalm.load(ordering: .acquiring) { return }
        life.withLock { life in
            life.succeeded()
            isCalm.store(!life.isClosed && !life.isDisplaced, ordering: .releasing)
        }
    }

    /// Counts a look-up and what it found.
    func counted(_ entries: [StoredEntry]) {
        counters.lookups.add(1, ordering: .relaxed)
        if !entries.isEmpty { counters.lookupsFound.add(1, ordering: .relaxed) }
    }

    /// What names an entry in the index.
    func identity(_ key: StoreKey, _ variant: StoreKey) -> EntryIdentity {
        EntryIdentity(primary: hashing.primary(key), variant: hashing.variant(variant, of: key))
    }

    var statistics: StoreStatistics {
        var all = StoreStatistics()
        all.lookups = counters.lookups.load(ordering: .relaxed)
        all.lookupsFound = counters.lookupsFound.load(ordering: .relaxed)
        all.entriesWritten = counters.entriesWritten.load(ordering: .relaxed)
        all.entriesEvicted = counters.entriesEvicted.load(ordering: .relaxed)
        all.entriesRemoved = counters.entriesRemoved.load(ordering: .relaxed)
        all.entriesCorrupt = counters.entriesCorrupt.load(ordering: .relaxed)
        all.pinsReleased = counters.pinsReleased.load(ordering: .relaxed)
        all.failures = counters.failures.load(ordering: .relaxed)
        all.bytesRead = counters.bytesRead.load(ordering: .relaxed)
        all.bytesWritten = counters.bytesWritten.load(ordering: .relaxed)
        all.entryCount = index.count
        all.bytesUsed = ledger.used
        all.capacity = ledger.capacity
        return all
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
