// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A segment's open file. A recycled one passes from segment to segment; when its last reader drops it, it is closed and, if it was
/// unlinked, its bytes are released.
final class SegmentFile: Sendable {
    let open: OpenFile
    private let files: any FileSystem
    private let quota: SpaceQuota
    private let bytes: Atomic<Int>
    private let isGone = Atomic<Bool>(false)

    /// Takes over an open file whose `bytes` are counted.
    init(_ open: OpenFile, bytes: Int, files: any FileSystem, quota: SpaceQuota) {
        self.open = open
        self.files = files
        self.quota = quota
        self.bytes = Atomic(bytes)
    }

    deinit {
        let isGone = isGone.load(ordering: .acquiring)
        // Another process may have it open, for example one that was started meanwhile, and would keep its bytes on the disk.
        if isGone { try? files.truncate(open, to: 0) }
        files.close(open)
        guard isGone else { return }
        quota.retire(-size)
        quota.release(size)
    }

    /// The size of the file as counted in the quota.
    var size: Int { bytes.load(ordering: .acquiring) }

    /// Records that the file was cut or extended; the caller tells the quota.
    func resized(to size: Int) { bytes.store(size, ordering: .releasing) }

    /// Records that the file has no name any more.
    func unlinked() {
        quota.retire(size)
        isGone.store(true, ordering: .releasing)
    }
}

/// A segment: a sequence of records under one number, in a file.
final class Segment: Sendable {
    let number: UInt64
    let kind: LogKind
    let epoch: UInt64
    /// The random number in its header.
    let identity: UInt64
    /// Its position in ``SegmentSlots``, which index rows contain.
    let slot: UInt16
    let file: SegmentFile

    init(_ header: SegmentHeader, slot: UInt16, file: SegmentFile) {
        number = header.number
        kind = header.kind
        epoch = header.epoch
        identity = header.identity
        self.slot = slot
        self.file = file
    }

    /// The size of the file as counted in the quota.
    var size: Int { file.size }
}

/// Finds the segment that an index row names by its slot.
final class SegmentSlots: Sendable {
    private struct State {
        /// How many slots have ever been taken.
        var count = 0
        var free: [UInt16] = []
    }

    private let state = Mutex(State())
    // Proof: allocated before anyone can know about it and freed with its owner. It is written under the lock of `state`, and read
    // under it or, by ``underLock(_:)``, under the lock of the shard with a row that points to the slot. A slot is filled before a
    // row that points to it gets into a shard, and freed after the last one has left its own; both under the lock of that shard.
    nonisolated(unsafe) private let segments: UnsafeMutablePointer<Segment?>

    init() {
        segments = .allocate(capacity: Geometry.maximumSegments)
        segments.initialize(repeating: nil, count: Geometry.maximumSegments)
    }

    deinit {
        segments.deinitialize(count: Geometry.maximumSegments)
        segments.deallocate()
    }

    /// The segment in a slot.
    subscript(slot: UInt16) -> Segment? {
        state.withLock { slot < $0.count ? segments[Int(slot)] : nil }
    }

    /// The segment in the slot of a row that is in its shard, whose lock the caller holds: needs no other lock.
    @inline(__always)
    func underLock(_ slot: UInt16) -> Segment? {
        slot < Geometry.maximumSegments ? segments[Int(slot)] : nil
    }

    /// Reserves a slot for a segment about to be made; nil if all are taken.
    func take() -> UInt16? {
        state.withLock { state in
            if let slot = state.free.popLast() { return slot }
            guard state.count < Geometry.maximumSegments else { return nil }
            state.count += 1
            return UInt16(state.count - 1)
        }
    }

    /// Puts a segment into the slot that was reserved for it.
    func put(_ segment: Segment) {
        guard segment.slot < Geometry.maximumSegments else { return }
        let old = state.withLock { state -> Segment? in
            state.count = max(state.count, Int(segment.slot) + 1)
            let old = segments[Int(segment.slot)]
            segments[Int(segment.slot)] = segment
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// Frees a reserved slot, or removes its segment.
    func free(_ slot: UInt16) {
        let segment = state.withLock { state -> Segment? in
            let segment = segments[Int(slot)]
            segments[Int(slot)] = nil
            state.free.append(slot)
            return segment
        }
        // Released outside the lock: the last reference closes a file.
        withExtendedLifetime(segment) {}
    }

    /// Every segment, in no order.
    var all: [Segment] { state.withLock { state in (0..<state.count).compactMap { segments[$0] } } }
}
