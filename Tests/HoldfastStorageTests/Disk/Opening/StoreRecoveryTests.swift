// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Recovery finds what counts in a directory")
struct StoreRecoveryTests {
    @Test("It finds the newest entries, the marks and the next numbers")
    func findsWhatCounts() throws {
        let sample = try StoreSample.full()
        let found = try sample.recover()
        let store = found.store
        #expect(found.orders(in: sample) == StoreSample.expected)
        #expect(found.rows.count == 5)
        #expect(store.nextOrder == 11)
        #expect(store.suspectBefore == 0)
        #expect(store.nextSegment == 4)
        #expect(store.nextBlob == 8)
        #expect(store.damage == RecoveredStore.Damage())
        #expect(store.segments.map(\.number) == [1, 2, 3])
        #expect(store.segments.map(\.content.kind) == [.small, .main, .small])
        #expect(store.segments.map(\.content.isSealed) == [true, true, false])
        #expect(store.segments.map(\.content.highestOrder) == [5, 8, 10])
        #expect(store.segments.map(\.blobBytes) == [216, 0, 0])
        #expect(store.marks.newestOrder == 8)
        let key = sample.key("p1")
        #expect(store.marks.takes(order: 2, tags: ["news"], key: sample.key("b"), hashing: sample.hashing))
        #expect(store.marks.takes(order: 7, tags: [], key: key, hashing: sample.hashing))
        #expect(!store.marks.takes(order: 8, tags: [], key: key, hashing: sample.hashing))
        #expect(found.row("a", in: sample)?.shadows == true)
        #expect(found.row("b", in: sample)?.shadows == false)
        #expect(found.row("a", in: sample)?.place.slot == 1)
        #expect(sample.files.openFileCount == 0)
    }

    @Test("For a segment without a table it finds the end and the records, so that it can be sealed")
    func unsealedSegment() throws {
        let sample = try StoreSample.full()
        let segment = try #require(try sample.recover().store.segments.last?.content)
        #expect(segment.rows.count == 2)
        #expect(segment.fileSize == StoreSample.segmentSize)
        let end = segment.rows.map { Int($0.place) + Int($0.units) }.max()
        #expect(segment.tail == end.map { $0 * Geometry.unit })
        let table = SegmentTable.encode(
            rows: segment.rows,
            blobs: segment.blobs,
            segment: 3,
            tableOffset: segment.tail,
            seed: sample.seed
        )
        let path = sample.layout.segment(3)
        let records = try #require(sample.files.contents(of: path)).prefix(segment.tail)
        #expect(sample.files.setContents(of: path, to: records + table))
        let again = try sample.recover()
        #expect(again.store.segments.last?.content.isSealed == true)
        #expect(again.orders(in: sample) == StoreSample.expected)
        #expect(again.store.damage.segments == 0)
    }

    @Test("Files of an older epoch or another number, and unreferenced blobs, are removed; foreign ones stay")
    func removesWhatIsVoid() throws {
        var sample = try StoreSample.full()
        sample.format.epoch = 2
        sample.writeSegment(4, .small, [sample.entry("g", order: 11)], isSealed: true, epoch: 2)
        let bytes = try #require(sample.files.contents(of: sample.layout.segment(4)))
        let zeros = [UInt8](repeating: 0, count: StoreSample.segmentSize)
        #expect(sample.files.setContents(of: sample.layout.segment(5), to: bytes))
        #expect(sample.files.setContents(of: sample.layout.segment(6), to: zeros))
        #expect(sample.files.setContents(of: sample.layout.segments + "/notes.txt", to: [1]))
        #expect(sample.files.setContents(of: sample.layout.blobs + "/7.blob", to: [1]))
        let found = try sample.recover()
        let store = found.store
        #expect(store.segments.map(\.number) == [4])
        #expect(found.rows.count == 1)
        #expect(store.damage.segments == 0)
        #expect(store.nextSegment == 5)
        #expect(sample.recovery.sweep(store.void).isEmpty)
        let left = [FileNumber.name(4) + ".seg", "notes.txt"]
        #expect(try sample.files.list(sample.layout.segments).sorted() == left)
        #expect(try sample.files.list(sample.layout.blobs) == ["7.blob"])
    }

    @Test("An entry without its blob, or with a blob of another size, is void, and what it superseded stays gone")
    func missingBlob() throws {
        for size in [nil, 215, 217] as [Int?] {
            let sample = try StoreSample.full()
            sample.writeSegment(4, .main, [sample.entry("c", order: 12, blob: 8)], isSealed: true)
            if let size {
                let content = [UInt8](repeating: 0, count: size)
                #expect(sample.files.setContents(of: sample.layout.blob(8), to: content))
            }
            let found = try sample.recover()
            #expect(found.row("c", in: sample) == nil)
            #expect(found.store.damage.entries == (size == nil ? 0 : 1))
            let primary = sample.hashing.primary(sample.key("c"))
            let variant = sample.hashing.variant(StoreKey([]), of: sample.key("c"))
            #expect(
                found.store.missingTombstones == [
                    Tombstone(kind: .variantTombstone, order: 12, primary: primary, variant: variant)
                ]
            )
            #expect(found.store.suspectBefore == 0)
            let void = [sample.layout.blob(7)] + (size == nil ? [] : [sample.layout.blob(8)])
            #expect(Set(found.store.void.map(\.path)) == Set(void))
        }
    }

    @Test(
        "An entry that lost its blob gets a tombstone, and is damage only after a clean close",
        arguments: [false, true]
    )
    func lostBlob(isClean: Bool) throws {
        var sample = try StoreSample.full()
        sample.format.isClean = isClean
        sample.writeSegment(4, .main, [sample.entry("g", order: 12, blob: 8)], isSealed: true)
        let store = try sample.recover().store
        #expect(store.damage.entries == (isClean ? 1 : 0))
        #expect(store.missingTombstones.map(\.order) == [12])
    }

    @Test(
        "After a power loss every entry is suspect; after a kill or a clean close none is",
        arguments: [(false, true, false), (false, false, true), (true, false, false), (true, true, false)]
    )
    func suspicionByBoot(_ isClean: Bool, _ isSameBoot: Bool, _ isSuspect: Bool) throws {
        var sample = try StoreSample.full()
        // A clean end leaves no segment without its table.
        sample.writeSegment(3, .small, [sample.entry("e", order: 9), sample.entry("f", order: 10)], isSealed: true)
        sample.format.isClean = isClean
        if !isSameBoot { sample.format.bootIdentity = [1] }
        #expect(try sample.recover().store.suspectBefore == (isSuspect ? 11 : 0))
    }

    @Test("If the system does not report boots, only a clean close is trusted")
    func unknownBoot() throws {
        var sample = try StoreSample.full()
        sample.files.bootIdentity = []
        sample.format.bootIdentity = []
        #expect(try sample.recover().store.suspectBefore == 11)
    }

    @Test("The head of a write without its body is no entry; in a sealed segment it still supersedes")
    func tornBody() throws {
        for isClean in [false, true] {
            var sample = try StoreSample()
            sample.format.isClean = isClean
            sample.writeSegment(1, .small, [sample.entry("a", order: 1)], isSealed: true)
            sample.writeSegment(2, .small, [sample.entry("a", order: 2)], isSealed: false)
            let body = Array("body of a 2".utf8)
            let bytes = try #require(sample.files.contents(of: sample.layout.segment(2)))
            let start = try #require(bytes.indices.first { bytes[$0...].starts(with: body) })
            #expect(sample.files.flipBit(of: sample.layout.segment(2), at: start))
            let found = try sample.recover()
            #expect(found.row("a", in: sample)?.order == (isClean ? 2 : 1))
            #expect(found.store.suspectBefore == (isClean ? 3 : 0))
            #expect(found.store.nextOrder == 3)
        }
    }

    @Test("Segments in which many writers have not filled their space yet are not damaged")
    func manyUnsealed() throws {
        let sample = try StoreSample()
        for number in 1...8 as ClosedRange<UInt64> {
            sample.writeSegment(number, .small, [sample.entry("\(number)", order: number)], isSealed: false)
        }
        let found = try sample.recover()
        #expect(found.store.suspectBefore == 0)
        #expect(found.rows.count == 8)
        #expect(found.store.damage == RecoveredStore.Damage())
    }

    @Test("A segment that has lost its table is damaged", arguments: 1...8 as ClosedRange<UInt64>)
    func lostTable(_ number: UInt64) throws {
        let sample = try StoreSample()
        for other in 1...8 as ClosedRange<UInt64> {
            sample.writeSegment(other, .small, [sample.entry("\(other)", order: other)], isSealed: false)
        }
        sample.list.rows[number]?.state = .sealed
        let found = try sample.recover()
        #expect(found.store.suspectBefore == 9)
        #expect(found.rows.count == 8)
    }

    /// What one segment of the list is, what becomes of its file, and whether trust is lost with it.
    static let mishaps: [(SegmentState, String, Bool)] = [
        (.open, "gone", true), (.sealed, "gone", true), (.idle, "gone", false), (.open, "other", true),
        (.sealed, "other", true), (.idle, "other", true), (.open, "zeros", true), (.idle, "zeros", false),
        (.open, "unlisted", true), (.sealed, "row", false), (.open, "row", false), (.sealed, "row and file", true),
        (.open, "empty and unlisted", false),
    ]

    @Test(
        "Missing, foreign or unlisted files make everything suspect; the remains of a kill do not",
        arguments: mishaps
    )
    func list(_ state: SegmentState, _ what: String, _ isSuspect: Bool) throws {
        let sample = try StoreSample.full()
        let isEmpty = what.hasPrefix("empty")
        sample.writeSegment(4, .main, isEmpty ? [] : [sample.entry("g", order: 11)], isSealed: state == .sealed)
        sample.list.rows[4]?.state = state
        let path = sample.layout.segment(4)
        var manifest = sample.manifest
        switch what {
        case "gone": sample.files.wipe(path)
        case "zeros":
            sample.files.setContents(of: path, to: [UInt8](repeating: 0, count: StoreSample.segmentSize))
        case "other":
            let row = try #require(sample.list.rows[4])
            sample.writeSegment(5, .main, [sample.entry("h", order: 12)], isSealed: false)
            sample.list.rows[5] = nil
            let other = SegmentHeader(kind: .main, number: 4, epoch: 1, createdOrder: 1, identity: row.identity + 1)
            sample.files.wipe(sample.layout.segment(5))
            var bytes = try #require(sample.files.contents(of: path))
            bytes.replaceSubrange(0..<SegmentHeader.size, with: other.encode(seed: sample.seed))
            sample.files.setContents(of: path, to: bytes)
        case "row", "row and file":
            manifest.damagedRows = [try #require(manifest.rows.first { $0.value.number == 4 }).key]
            manifest.rows[manifest.damagedRows.first ?? 0] = nil
            if what.hasSuffix("file") { sample.files.wipe(path) }
        default: manifest.rows = manifest.rows.filter { $0.value.number != 4 }
        }
        var recovery = Recovery(layout: sample.layout, files: sample.files, manifest: manifest)
        let store = try recovery.run { _, _ in }
        #expect((store.suspectBefore > 0) == isSuspect)
        // Beside a store at work all of this may be on its way.
        var beside = Recovery(layout: sample.layout, files: sample.files, manifest: manifest, isHeld: true)
        #expect(try beside.run { _, _ in }.suspectBefore == 0)
    }

    @Test("A prefix or tag mark that cannot be read makes everything suspect", arguments: [7, 8] as [UInt64])
    func lostMark(_ order: UInt64) throws {
        let sample = try StoreSample.full()
        let rows = try SegmentReader(files: sample.files, format: sample.format)
            .read(sample.layout.segment(2), number: 2)
        guard let content = rows else {
            Issue.record("the segment is void")
            return
        }
        let row = try #require(content.rows.first { $0.order == order })
        #expect(sample.files.flipBit(of: sample.layout.segment(2), at: Int(row.place) * Geometry.unit + 64))
        let store = try sample.recover().store
        #expect(store.suspectBefore == 11)
        #expect(store.damage.segments == 1)
        #expect(store.marks.takes(order: 2, tags: ["news"], key: sample.key("b"), hashing: sample.hashing))
    }

    @Test("A void file that cannot be removed is reported, and one that is already gone is not")
    func sweepTells() throws {
        var sample = try StoreSample.full()
        sample.format.epoch = 2
        let void = try sample.recover().store.void
        try #require(void.count == 4)
        sample.files.plan(SimulatedFileSystem.Fault.once(at: 1, errno: 13))
        #expect(sample.recovery.sweep(void) == [void[1]])
        sample.files.plan()
        #expect(sample.recovery.sweep(void).isEmpty)
    }

    @Test("Numbers continue above those of the format and of suspect entries")
    func numbersGoOn() throws {
        var sample = try StoreSample.full()
        sample.format.nextOrder = 500
        #expect(try sample.recover().store.nextOrder == 500)
        sample.format.suspectBefore = 600
        let store = try sample.recover().store
        #expect(store.nextOrder == 600)
        #expect(store.suspectBefore == 600)
    }
}
