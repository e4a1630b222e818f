// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import Harness

@Suite("What the system counts")
struct ProcessCountersTests {
    @Test("The lines of /proc/self/io")
    func transfer() {
        let text = "rchar: 4292\nwchar: 120\nsyscr: 12\nread_bytes: 0\n"
        #expect(ProcessCounters.transfer(in: text) == .init(read: 4_292, written: 120))
        #expect(ProcessCounters.transfer(in: "rchar: 4292\n") == nil)
        #expect(ProcessCounters.transfer(in: "rchar: x\nwchar: 1\n") == nil)
        let later = ProcessCounters.Transfer(read: 10, written: 5)
        #expect(later.since(.init(read: 4, written: 1)) == .init(read: 6, written: 4))
    }

    @Test("The pages of /proc/self/statm")
    func memory() {
        let memory = ProcessCounters.memory(in: "1000 300 100 1 0 200 0\n", pageSize: 4_096)
        #expect(memory == .init(resident: 300 * 4_096, anonymous: 200 * 4_096))
        #expect(ProcessCounters.memory(in: "1000 300", pageSize: 4_096) == nil)
    }

    @Test("CPU time grows with work, however long others occupy the processors")
    func processorTime() {
        let before = ProcessCounters.processorTime()
        var numbers = SeededNumbers(seed: 1)
        var sum: UInt64 = 0
        while ProcessCounters.processorTime() == before { sum &+= numbers.next() }
        #expect(ProcessCounters.processorTime() > before, "after summing to \(sum)")
    }

    #if os(Linux)
        @Test("Bytes written to a file are counted")
        func counted() throws {
            let scratch = try ScratchDirectory(in: nil, prefix: "harness-tests")
            defer { scratch.remove() }
            let before = try #require(ProcessCounters.transfer())
            try Data(count: 1 << 20).write(to: URL(fileURLWithPath: scratch.path(of: "file")))
            let written = try #require(ProcessCounters.transfer()).since(before).written
            #expect(written >= 1 << 20)
            #expect(DiskUse.bytes(below: scratch.path) >= 1 << 20)
        }

        @Test("An unlinked file counts while it is open, and a linked one once")
        func unlinked() throws {
            let scratch = try ScratchDirectory(in: nil, prefix: "harness-tests")
            defer { scratch.remove() }
            let path = scratch.path(of: "file")
            try Data(count: 1 << 16).write(to: URL(fileURLWithPath: path))
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            #expect(DiskUse.bytes(below: scratch.path) == 1 << 16)
            try FileManager.default.removeItem(atPath: path)
            #expect(DiskUse.bytes(below: scratch.path) == 1 << 16)
            try handle.close()
            #expect(DiskUse.bytes(below: scratch.path) == 0)
        }
    #endif

    @Test(
        "The longest mount point above a path says where it is",
        arguments: [
            ("/srv/x", false), ("/dev/shm/x", true), ("/dev/shm", true), ("/dev/shmoo/x", false), ("/run/x", true),
            ("/run/disk/x", false),
        ]
    )
    func mounts(_ path: String, _ isInMemory: Bool) {
        let mounts = """
            /dev/vda / ext4 rw 0 0
            tmpfs /dev/shm tmpfs rw 0 0
            tmpfs /run tmpfs rw 0 0
            /dev/vdb /run/disk ext4 rw 0 0
            """
        #expect(ScratchDirectory.isInMemory(path, mounts: mounts) == isInMemory)
    }
}
