// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("LogState", .timeLimit(.minutes(20)))
struct LogStateTests {
    private let size = 1 << 20

    private func segment(_ kind: LogKind = .small, number: UInt64 = 1) throws -> Segment {
        let files = SimulatedFileSystem()
        let file = SegmentFile(
            try files.open("/segment", .create),
            bytes: size,
            files: files,
            quota: SpaceQuota(budget: .none, used: 0)
        )
        let header = SegmentHeader(kind: kind, number: number, epoch: 1, createdOrder: 1, identity: 1)
        return Segment(header, slot: 0, file: file)
    }

    private func row(at place: LogState.Reservation) -> TableRow {
        TableRow(primary: 1, variant: 1, place: UInt32(place.offset / 16), order: 1, units: 4, kind: .entry)
    }

    @Test("A log whose segments could not be reclaimed waits for the other", arguments: LogKind.allCases)
    func stuck(_ kind: LogKind) throws {
        var log = LogState(segmentSize: size)
        for number in 1...6 as ClosedRange<UInt64> {
            let next = try segment(number.isMultiple(of: 2) ? kind : kind == .small ? .main : .small, number: number)
            log.enter(LogState.Sealed(segment: next, blobBytes: 0, blobCount: 0))
            if next.kind == kind { log.stuck(next) }
        }
        #expect(log.victim?.segment.number == 1)
    }

    @Test("A segment reserved for the reclaimer counts as free space")
    func carriedSpare() throws {
        var log = LogState(segmentSize: size)
        #expect(log.roomAhead == 0)
        log.carriedSpare = try segment()
        let alone = log.roomAhead
        #expect(alone == size - SegmentHeader.size - SegmentTable.size(rows: 0, blobs: 0))
        log.begin(LogState.Open(segment: try segment(), tail: SegmentHeader.size), destination: .carried)
        #expect(log.roomAhead == 2 * alone)
        #expect(log.removeAll().count == 2)
        #expect(log.roomAhead == 0)
    }

    @Test(
        "Blobs fill a caller's segment if they weigh a 32nd of the store, from one to four segments",
        arguments: [(0, 1), (16, 1), (64, 2), (96, 3), (256, 4), (4_096, 4)]
    )
    func blobLimit(segments: Int, filling: Int) throws {
        var log = LogState(segmentSize: size, capacity: segments * size)
        log.begin(LogState.Open(segment: try segment(), tail: SegmentHeader.size), destination: .small)
        for turn in 1...filling {
            #expect(log.hasRoom(.small, length: 64, hasBlob: true), "with \(turn - 1) segments of blobs")
            let reserved = log.reserve(.small, length: 64, hasBlob: true)
            let place = try #require(reserved)
            let blob = BlobRow(place: UInt32(place.offset / 16), number: UInt64(turn), storedBytes: UInt64(size))
            _ = log.finish(place, row: row(at: place), blob: blob)
        }
        #expect(!log.hasRoom(.small, length: 64, hasBlob: true))
    }

    @Test("Space reserved for a record stays reserved, although other blobs fill the segment meanwhile")
    func claim() throws {
        var log = LogState(segmentSize: size)
        log.begin(LogState.Open(segment: try segment(), tail: SegmentHeader.size), destination: .small)
        let reserved = log.reserve(.small, length: 64, hasBlob: true)
        let first = try #require(reserved)
        #expect(log.hasRoom(.small, length: 64, hasBlob: true))
        log.isReserved[LogState.Destination.small.rawValue] = true
        let blob = BlobRow(place: UInt32(first.offset / 16), number: 1, storedBytes: UInt64(size))
        _ = log.finish(first, row: row(at: first), blob: blob)
        #expect(!log.hasRoom(.small, length: 64, hasBlob: true))
        let answers = [false, true].map { log.reserve(.small, length: 64, hasBlob: true, hasClaim: $0) != nil }
        #expect(answers == [false, true])
    }

    @Test(
        "An open segment is closed once as many segments as a quarter of the store has are younger and next, or if entries are dropped",
        arguments: [(64, 16), (256, 64), (16, 4), (4, 4)]
    )
    func age(segments: Int, age: UInt64) throws {
        for (victim, atOnce, isClosed) in [
            (100 + age + 1, false, true), (100 + age, false, false), (101, true, true), (99, true, false),
        ] {
            var log = LogState(segmentSize: size, capacity: segments * size)
            let open = try segment(.main, number: 100)
            log.begin(LogState.Open(segment: open, tail: SegmentHeader.size), destination: .carried)
            let next = try segment(.small, number: victim)
            log.enter(LogState.Sealed(segment: next, blobBytes: 0, blobCount: 0))
            let answer = log.closeOlderThanVictim(atOnce: atOnce)
            #expect(answer == isClosed, "victim \(victim), at once: \(atOnce)")
            #expect(log.takeFull().count == (isClosed ? 1 : 0))
        }
    }
}
