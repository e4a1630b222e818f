// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("SimulatedFileSystem: faults", .timeLimit(.minutes(20)))
struct SimulatedFileSystemFaultTests {
    typealias Fault = SimulatedFileSystem.Fault

    private func chunk(_ text: String) -> ByteChunk { ByteChunk(copying: text.utf8) }

    /// Four writes of one byte each, a fifth step reads; the numbers of what was refused.
    private func run(_ files: SimulatedFileSystem, _ file: OpenFile) -> [Int32?] {
        var outcomes: [Int32?] = []
        func note(_ body: () throws(FileSystemError) -> Void) {
            do throws(FileSystemError) {
                try body()
                outcomes.append(nil)
            } catch {
                outcomes.append(error.errno)
            }
        }
        for offset in 0..<4 {
            note { () throws(FileSystemError) in try files.write(chunk("abcd"), to: file, at: offset * 4) }
        }
        note { () throws(FileSystemError) in _ = try files.read(file, from: 0, count: 100) }
        return outcomes
    }

    static let plans: [(Fault, [Int32?], String, Bool)] = [
        (.once(at: 1, errno: EIO), [nil, EIO, nil, nil, nil], "abcd....abcdabcd", false),
        (.once(at: 9, errno: EIO), [nil, nil, nil, nil, nil], "abcdabcdabcdabcd", false),
        (.always(from: 2, errno: ENOSPC), [nil, nil, ENOSPC, ENOSPC, ENOSPC], "abcdabcd", false),
        (.always(errno: EIO).only("read"), [nil, nil, nil, nil, EIO], "abcdabcdabcdabcd", false),
        (.once(at: 0, errno: EIO).only("read"), [nil, nil, nil, nil, EIO], "abcdabcdabcdabcd", false),
        (.during(0..<2, errno: EIO), [EIO, EIO, nil, nil, nil], "........abcdabcd", false),
        (.shortWrite(at: 3, errno: ENOSPC), [nil, nil, nil, ENOSPC, nil], "abcdabcdabcdab", false),
        (.shortWrite(at: 3, errno: EIO, keeping: 3), [nil, nil, nil, EIO, nil], "abcdabcdabcdabc", false),
        (.shortWrite(at: 3, errno: EIO, keeping: 9), [nil, nil, nil, EIO, nil], "abcdabcdabcdabcd", false),
        (.shortWrite(at: 4, errno: EIO), [nil, nil, nil, nil, EIO], "abcdabcdabcdabcd", false),
        (.stop(after: 1), [nil, nil, EIO, EIO, EIO], "abcdabcd", true),
        (.stop(within: 1), [nil, EIO, EIO, EIO, EIO], "abcdab", true),
    ]

    @Test("A planned fault affects its steps and no others", arguments: plans)
    func plan(_ fault: Fault, _ outcomes: [Int32?], _ left: String, _ stops: Bool) throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/f", .create)
        files.plan(fault)
        #expect(run(files, file) == outcomes)
        let bytes = try #require(files.contents(of: "/f"))
        #expect(String(decoding: bytes.map { $0 == 0 ? 46 : $0 }, as: UTF8.self) == left)
        #expect(files.log.map(\.errno) == [nil] + outcomes)
        #expect(files.isStopped == stops)
    }

    @Test("A gathered write is one step and is torn as a whole")
    func gathered() throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/f", .create)
        files.plan(.shortWrite(at: 0, errno: EIO, keeping: 5))
        #expect(throws: FileSystemError.self) { try files.write(chunk("head"), chunk("body"), to: file, at: 0) }
        #expect(files.contents(of: "/f") == Array("headb".utf8))
        #expect(files.stepCount == 1)
        try files.write(chunk("head"), chunk("body"), to: file, at: 0)
        #expect(files.contents(of: "/f") == Array("headbody".utf8))
    }

    @Test("Steps are counted from the plan on and logged with their file")
    func log() throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/f", .create)
        files.plan()
        try files.write(chunk("abc"), to: file, at: 7)
        files.close(file)
        #expect(files.stepCount == 1)
        #expect(files.log.map(\.description) == ["0 open /f 0+0", "1 write /f 7+3"])
        #expect(throws: FileSystemError(operation: "write", path: "\(file.descriptor)", errno: EBADF)) {
            try files.write(chunk("late"), to: file, at: 0)
        }
    }

    @Test("Non-blocking reads follow the pattern, and are never partial")
    func cachedReads() throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/f", .create)
        try files.write(chunk("abc"), to: file, at: 0)
        func answers() throws -> [Bool] {
            try (0..<5).map { _ in try files.readIfCached(file, from: 0, count: 3) == Array("abc".utf8) }
        }
        #expect(try answers() == [true, true, true, true, true])
        #expect(try files.readIfCached(file, from: 1, count: 3) == nil)
        files.cachedReads = .pattern([false, true, true])
        #expect(try answers() == [false, true, true, false, true])
        files.cachedReads = .none
        #expect(try answers() == [false, false, false, false, false])
    }

    @Test("Threads can share it, and no step is lost")
    func threads() async throws {
        let files = SimulatedFileSystem()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    guard let file = try? files.open("/\(number)", .create) else { return }
                    for place in 0..<100 { try? files.write(ByteChunk([1]), to: file, at: place * 4_096) }
                    files.close(file)
                }
            }
        }
        #expect(files.stepCount == 808)
        #expect(files.usedBytes == 800 * 4_096)
    }
}
