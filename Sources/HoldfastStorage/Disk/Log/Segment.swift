// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A segment's open file. A recycled one goes from segment to segment; it is closed, and once it was unlinked its bytes are
/// given back, when the last reader lets go of it.
final class SegmentFile: Sendable {
    let open: OpenFile
    private let files: any FileSystem
    private let ledger: SpaceLedger
    private let bytes: Atomic<Int>
    private let isGone = Atomic<Bool>(false)

    /// Takes over an open file whose `bytes` are in the ledger.
    init(_ open: OpenFile, bytes: Int, files: any FileSystem, ledger: SpaceLedger) {
        self.open = open
        self.files = files
        self.ledger = ledger
        self.bytes = Atomic(bytes)
    }

    deinit {
        files.close(open)
        guard isGone.load(ordering: .acquiring) else { return }
        ledger.retire(-size)
        ledger.release(size)
    }

    /// The size of the file, as the ledger counts it.
    var size: Int { bytes.load(ordering: .acquiring) }

    /// Notes that the file was cut or extended; the ledger is told by the caller.
    func resized(to size: Int) { bytes.store(size, ordering: .releasing) }

    /// Notes that the file bears no name any more.
    func unlinked() {
        ledger.retire(size)
        isGone.store(true, ordering: .releasing)
    }
}

/// A segment: a run of records under one number, in a file.
final class Segment: Sendable {
    let number: UInt64
    let kind: LogKind
    let epoch: UInt64
    /// What its header bears beside the number.
    let identity: UInt64
    /// Its place in ``SegmentSlots``, by which index rows name it.
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

    /// The size of the file, as the ledger counts it.
    var size: Int { file.size }
}

/// Which segment an index row means by a slot.
final class SegmentSlots: Sendable {
    /// Rows have twelve bits for a slot.
    static let maximum = 4_095

    private struct State {
        var segments: [Segment?] = []
        var free: [UInt16] = []
    }

    private let state = Mutex(State())

    /// The segment in a slot.
    subscript(slot: UInt16) -> Segment? {
        state.withLock { slot < $0.segments.count ? $0.segments[Int(slot)] : nil }
    }

    /// Sets a slot aside for a segment about to be made; nil when all are taken.
    func take() -> UInt16? {
        state.withLock { state in
            if let slot = state.free.popLast() { return slot }
            guard state.segments.count < Self.maximum else { return nil }
            state.segments.append(nil)
            return UInt16(state.segments.count - 1)
        }
    }

    /// Puts a segment into the slot that was set aside for it.
    func put(_ segment: Segment) {
        state.withLock { state in
            while state.segments.count <= segment.slot { state.segments.append(nil) }
            state.segments[Int(segment.slot)] = segment
        }
    }

    /// Frees a slot that was set aside, or takes its segment out.
    func free(_ slot: UInt16) {
        let segment = state.withLock { state -> Segment? in
            let segment = state.segments[Int(slot)]
            state.segments[Int(slot)] = nil
            state.free.append(slot)
            return segment
        }
        // Let go of outside of the lock: the last reference closes a file.
        withExtendedLifetime(segment) {}
    }

    /// Every segment, in no order.
    var all: [Segment] { state.withLock { $0.segments.compactMap { $0 } } }
}
