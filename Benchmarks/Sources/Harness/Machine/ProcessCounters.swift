// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CAllocator
internal import Foundation

/// The system's figures on this process.
public enum ProcessCounters {
    /// Bytes of all read and write calls, whether from the page cache or not.
    public struct Transfer: Sendable, Equatable {
        /// Bytes read.
        public var read: Int
        /// Bytes written.
        public var written: Int

        /// Creates a transfer from both counts.
        public init(read: Int, written: Int) {
            (self.read, self.written) = (read, written)
        }

        /// The transfer since `earlier`.
        public func since(_ earlier: Transfer) -> Transfer {
            Transfer(read: read - earlier.read, written: written - earlier.written)
        }
    }

    /// The resident memory of the process.
    public struct Memory: Sendable, Equatable {
        /// All resident bytes.
        public var resident: Int
        /// Bytes that do not belong to a file: heap, stacks, tables.
        public var anonymous: Int
    }

    /// All bytes so far, of all threads; nil if the system does not count them (only Linux does).
    public static func transfer() -> Transfer? {
        guard let text = text(of: "/proc/self/io") else { return nil }
        return transfer(in: text)
    }

    /// The current memory; nil if the system does not report it in this way (only Linux does).
    public static func memory() -> Memory? {
        guard let text = text(of: "/proc/self/statm") else { return nil }
        return memory(in: text, pageSize: Int(sysconf(Int32(_SC_PAGESIZE))))
    }

    /// Processor time in nanoseconds that this process has used, including all threads and their system calls.
    public static func processorTime() -> UInt64 {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return UInt64(max(0, time.tv_sec)) * 1_000_000_000 + UInt64(max(0, time.tv_nsec))
    }

    /// Returns freed memory to the system if the allocator can, so that resident memory is the memory in use.
    public static func returnFreedMemory() {
        holdfast_return_freed_memory()
    }

    /// Reads the lines `rchar: N` and `wchar: N`.
    static func transfer(in text: String) -> Transfer? {
        var counts: [Substring: Int] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, let count = Int(parts[1].filter { !$0.isWhitespace }) else { continue }
            counts[parts[0]] = count
        }
        guard let read = counts["rchar"], let written = counts["wchar"] else { return nil }
        return Transfer(read: read, written: written)
    }

    /// Reads `size resident shared …`, counted in pages.
    static func memory(in text: String, pageSize: Int) -> Memory? {
        let fields = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard fields.count >= 3 else { return nil }
        return Memory(resident: fields[1] * pageSize, anonymous: (fields[1] - fields[2]) * pageSize)
    }

    private static func text(of path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return String(bytes: data, encoding: .utf8)
    }
}
