// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// The script in `docs` shares no line with this module: it shows that the documentation of the format suffices.
@Suite("docs/operating/list-store.py", .timeLimit(.minutes(20)))
struct ListStoreScriptTests {
    private static let script = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs/operating/list-store.py")

    private static var python: URL? {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        return folders.map { URL(fileURLWithPath: String($0)).appendingPathComponent("python3") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Whether the script can be run here.
    static var isHere: Bool { python != nil && FileManager.default.fileExists(atPath: script.path) }

    /// What the script prints of a directory, line by line, sorted.
    static func list(_ path: String) throws -> [String] {
        let run = try ChildProcess.run("python3", [script.path, path], errors: .inherited)
        #expect(run.status == 0)
        return run.output.split(separator: "\n").map(String.init).sorted()
    }

    private static func format(suspectBefore: UInt64 = 0) -> StoreFormat {
        var generator = SeededGenerator(seed: 12)
        var format = StoreFormat.new(segmentSize: 1 << 20, using: &generator)
        format.epoch = 4
        format.suspectBefore = suspectBefore
        return format
    }

    private static func line(
        _ key: String,
        _ order: Int,
        variant: String = "",
        body: Int = 3,
        tags: String = "",
        pinned: Int = 0,
        suspect: Int = 0
    ) -> String {
        "key=b'\(key)' variant=b'\(variant)' version=\(order) stored=\(order)000 body=\(body) metadata=4 "
            + "tags=[\(tags)] sealed=0 pinned=\(pinned) suspect=\(suspect)"
    }

    @Test("It lists the live entries of sealed, open and damaged segments by the rules", .enabled(if: isHere))
    func lists() throws {
        let directory = try SampleDirectory(Self.format(suspectBefore: 2))
        defer { directory.remove() }
        let seed = directory.format.hashSeed

        var sealed = SampleSegment(1, epoch: 4, seed: seed)
        sealed.entry("plain", "v", order: 1, tags: ["b", "a"])
        sealed.entry("replaced", order: 2)
        sealed.entry("removed", order: 3)
        sealed.entry("other variant", "one", order: 4)
        sealed.entry("other variant", "two", order: 5)
        sealed.entry("all variants", "one", order: 6)
        sealed.entry("all variants", "two", order: 7)
        sealed.entry("tagged", order: 8, tags: ["news"])
        sealed.entry("/a/1", order: 9)
        sealed.entry("older of damaged", order: 10)
        let lost = sealed.entry("older of damaged", order: 11)
        sealed.damage(at: lost + 50)
        let copied = sealed.entry("copied", order: 12)
        sealed.damage(at: copied + 110)
        try directory.write(sealed.sealed(), to: "segments/\(FileNumber.name(1)).seg")

        var open = SampleSegment(2, kind: .main, epoch: 4, seed: seed)
        open.entry("copied", order: 12) { $0.isPinned = true }
        open.entry("replaced", order: 20)
        open.mark(.variantTombstone, "removed", order: 3)
        open.garbage([UInt8](repeating: 9, count: 100))
        open.mark(.variantTombstone, "other variant", "one", order: 22)
        open.mark(.primaryTombstone, "all variants", order: 23)
        open.entry("all variants", "three", order: 24)
        open.mark(.tagMark, "news", order: 25)
        open.entry("tagged since", order: 26, tags: ["news"])
        open.mark(.prefixMark, "/a/", order: 27)
        open.entry("/a/2", order: 28)
        let torn = open.entry("torn", order: 29)
        // Its body begins behind a header of 104 bytes and a detail of 22.
        open.damage(at: torn + 127)
        let tail = [UInt8](repeating: 0, count: 500) + FormatSamples.record("stale", segment: 1, order: 99, seed: seed)
        try directory.write(open.bytes + tail, to: "segments/\(FileNumber.name(2)).seg")

        var broken = SampleSegment(3, epoch: 4, seed: seed)
        for (order, size) in [(30, 100_000), (31, 131_040), (32, 5)] {
            broken.entry("blob \(order)", order: UInt64(order), body: []) { header in
                header.hasBlob = true
                header.bodyLength = size
                header.bodyWord = UInt64(order)
                header.inlineLength = BlobChunk.payload
            }
        }
        try directory.writeBlob(30, [UInt8](repeating: 1, count: 100_000))
        try directory.writeBlob(31, [UInt8](repeating: 1, count: 131_040))
        try directory.writeBlob(32, [1, 2, 3, 4])
        var file = broken.sealed()
        // The first row becomes a tombstone of its own key, if the damaged table is believed.
        file[broken.bytes.count + 26] ^= 3
        try directory.write(file, to: "segments/\(FileNumber.name(3)).seg")

        var purged = SampleSegment(4, epoch: 3, seed: seed)
        purged.entry("purged", order: 40)
        try directory.write(purged.sealed(), to: "segments/\(FileNumber.name(4)).seg")
        var foreign = SampleSegment(5, epoch: 4, seed: seed)
        foreign.entry("under a header of another number", order: 50)
        let header = SampleSegment(6, epoch: 4, seed: seed).bytes
        try directory.write(header + foreign.bytes.dropFirst(64), to: "segments/\(FileNumber.name(5)).seg")

        var begun = SampleSegment(7, epoch: 4, seed: seed)
        begun.entry("in the making", order: 60)
        try directory.write(begun.bytes, to: "segments/\(FileNumber.name(7)).tmp")

        let expected = [
            Self.line("plain", 1, variant: "v", tags: "b'a', b'b'", suspect: 1), Self.line("copied", 12, pinned: 1),
            Self.line("replaced", 20), Self.line("other variant", 5, variant: "two"),
            Self.line("all variants", 24, variant: "three"),
            Self.line("tagged since", 26, tags: "b'news'"), Self.line("/a/2", 28),
            Self.line("blob 30", 30, body: 100_000),
            Self.line("blob 31", 31, body: 131_040),
        ]
        #expect(try Self.list(directory.url.path) == expected.sorted())
    }

    @Test("For an encrypted entry it shows what is not encrypted", .enabled(if: isHere))
    func sealedEntry() throws {
        let directory = try SampleDirectory(Self.format())
        defer { directory.remove() }
        var segment = SampleSegment(0xAB, epoch: 4, seed: directory.format.hashSeed)
        segment.entry("secret", order: 7) { $0.keyID = 3 }
        try directory.write(segment.bytes, to: "segments/\(FileNumber.name(0xAB)).seg")
        #expect(
            try Self.list(directory.url.path) == [
                "key=b'' variant=b'' version=7 stored=7000 body=3 metadata=0 tags=[] sealed=3 pinned=0 suspect=0"
            ]
        )
    }
}
