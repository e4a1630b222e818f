// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Makes room for callers: with new segments while the reclaimer's reserve stays complete, otherwise by reclaiming. For the thread
/// of changes.
final class SpaceAllocator: Sendable {
    private let log: Log
    private let reclaimer: Reclaimer
    private let remover: Remover
    private let tuner: SharedWindowTuner
    private let pins: PinRegistry
    private let blobs: BlobFiles
    private let threads: IOThreads
    private let health: StoreHealth
    /// Whether room is being made for the next blob.
    private let isMakingRoom = Atomic<Bool>(false)

    init(_ opened: OpenedStore, log: Log, reclaimer: Reclaimer, remover: Remover, tuner: SharedWindowTuner) {
        (pins, blobs, threads, health) = (opened.pins, opened.blobs, opened.threads, opened.health)
        (self.log, self.reclaimer, self.remover, self.tuner) = (log, reclaimer, remover, tuner)
    }

    /// Ensures that an open segment has room, and reserves it before anyone else can.
    ///
    /// - Parameters:
    ///   - reserve: takes the room; it runs at once and must do no more than that.
    /// - Throws: `.noSpace` if pinned entries and those being written or read leave none; the error of the file system.
    func withRoom<Value>(
        _ request: LogState.Request,
        _ reserve: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try health.checkOpen()
        log.sealFull()
        // Another caller may have made room meanwhile.
        let isThere = log.claim(request)
        defer { log.change { $0.isReserved[request.destination.rawValue] = false } }
        if !isThere { try makeRoom(request.destination) }
        defer {
            if !isThere {
                log.sealFull()
                remover.writePendingTombstones()
                threads.later(.changes) { [self] in makeSpare() }
            }
        }
        return try reserve()
    }

    /// The same for a tombstone or mark: without room for callers, it gets a place in the reclaimer's segment, as far as the
    /// reserve allows.
    ///
    /// - Parameter reserve: gets the destination that is reserved for it.
    func withRoomForRemoval<Value>(
        _ request: LogState.Request,
        _ reserve: (LogState.Destination) -> Value
    ) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try withRoom(request) { reserve(request.destination) }
        } catch {
            guard error.code == .noSpace, log.lendsRoom(for: request.length) else { throw error }
            defer { log.noteRoomAhead() }
            return reserve(.carried)
        }
    }

    /// Opens a new segment for callers, reserved for the one whose turn it is.
    private func makeRoom(_ destination: LogState.Destination) throws(StoreError) {
        log.close([destination])
        reclaimer.mergeSmall()
        if let spare = log.takeSpare() {
            try log.begin(spare, destination: destination, isReserved: true)
        } else {
            try log.begin(try createForCallers(destination.kind), destination: destination, isReserved: true)
        }
    }

    /// Makes a segment in advance for the small log, if there is space for it.
    func makeSpare() {
        // In a store with few segments, an empty one costs more hits than it saves time.
        guard log.quota.capacity / log.geometry.segmentSize >= 32, !health.isClosed,
            log.ask({ $0.spare == nil })
        else { return }
        guard let segment = try? createForCallers(.small, isAhead: true) else { return }
        log.keepSpare(segment)
    }

    /// Makes a segment for callers: from a new file while the reclaimer's reserve stays complete, otherwise from the file of one
    /// that is reclaimed for it.
    ///
    /// - Parameters:
    ///   - isAhead: whether nobody waits for it: then a full device is no reason to evict.
    private func createForCallers(_ kind: LogKind, isAhead: Bool = false) throws(StoreError) -> Segment {
        let size = log.geometry.segmentSize
        var search = ReclaimAttempts(segments: log.ask { $0.count })
        if log.quota.used > log.quota.capacity / 2 { tuner.begin() }
        while true {
            var deviceError: StoreError?
            if log.quota.grant(size, for: .caller) {
                do throws(StoreError) {
                    return try log.create(kind)
                } catch {
                    // A device that others have filled still holds segments of this store.
                    guard error.code == .noSpace, error.cause != nil, !isAhead, log.ask({ $0.victim != nil }) else {
                        throw error
                    }
                    deviceError = error
                }
            } else if let refusal = log.quota.refusal(wanted: 0, pinned: pins.sum, read: blobs.readBytes) {
                throw refusal
            }
            do throws(StoreError) {
                let isDeviceFull = deviceError != nil
                if let recycled = try search.next(reclaimer, recyclingFor: kind, isDeviceFull: isDeviceFull) {
                    return recycled
                }
            } catch {
                throw deviceError ?? error
            }
        }
    }

    /// Changes: makes room for bytes of a blob by reclaiming.
    ///
    /// - Parameters:
    ///   - isDeviceFull: whether the device itself refused them, so that at least one segment must go.
    func makeRoomForBlob(_ bytes: Int, isDeviceFull: Bool = false) throws(StoreError) {
        try health.checkOpen()
        blobs.retryLeftovers()
        remover.removePendingBlobs()
        var search = ReclaimAttempts(segments: log.ask { $0.count })
        var mustFree = isDeviceFull
        while mustFree || !log.quota.hasRoom(bytes, for: .caller) {
            if log.discardSpare() {
                mustFree = false
                continue
            }
            if !mustFree,
                let refusal = log.quota.refusal(wanted: bytes, pinned: pins.sum, read: blobs.readBytes)
            {
                throw refusal
            }
            if mustFree, log.ask({ $0.victim == nil }) { throw StoreError.noSpace }
            _ = try search.next(reclaimer, recyclingFor: nil, isDeviceFull: mustFree)
            mustFree = false
            remover.removePendingBlobs()
        }
    }

    /// Makes room for the next blob in the background, if there is little; nobody waits for that.
    func makeRoomForBlobSoon(_ bytes: Int) {
        let bytes = min(2 * bytes, log.quota.capacity / 64)
        guard log.quota.capacity / log.geometry.segmentSize >= 32, !log.quota.hasRoom(bytes, for: .caller),
            !isMakingRoom.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        let isTaken = threads.later(.changes) { [self] in
            isMakingRoom.store(false, ordering: .releasing)
            try? makeRoomForBlob(bytes)
        }
        if !isTaken { isMakingRoom.store(false, ordering: .releasing) }
    }

    /// Changes FORMAT on a device that may be full: segments that contain purged entries are removed first.
    func writeFormat(_ change: (inout StoreFormat) -> Void) throws(StoreError) {
        for _ in 0..<4 {
            do throws(StoreError) {
                return try log.writeFormat(change)
            } catch {
                guard error.code == .noSpace else { throw error }
                if log.discardSpare() { continue }
                log.discardCarriedSpare()
                // The unused parts of open segments are released, and then the oldest segment is removed.
                log.close(log.ask { log in [.small, .main].filter { log.hasRecords($0) } }, isCut: true)
                do throws(StoreError) {
                    _ = try reclaimer.reclaimOldest(recyclingFor: nil, dropsUnpinned: true, isDeviceFull: true)
                } catch {
                    health.counters.failures.add(1, ordering: .relaxed)
                }
            }
        }
        try log.writeFormat(change)
    }
}

/// A search for room: reclaims segment after segment until its caller has what it needs.
///
/// At first, the entries that ``RetentionPolicy`` chooses are carried. Once every segment has been tried, only pinned ones are.
struct ReclaimAttempts {
    private let segments: Int
    private var turns = 0

    init(segments: Int) { self.segments = segments }

    /// Reclaims the next segment.
    ///
    /// - Throws: `.noSpace` once everything that may be removed is gone.
    mutating func next(
        _ reclaimer: Reclaimer,
        recyclingFor kind: LogKind?,
        isDeviceFull: Bool = false
    ) throws(StoreError) -> Segment? {
        guard turns < 4 * segments + 8 else { throw StoreError.noSpace }
        turns += 1
        return try reclaimer.reclaimOldest(
            recyclingFor: kind,
            dropsUnpinned: turns > segments + 2,
            isDeviceFull: isDeviceFull
        )
    }
}
