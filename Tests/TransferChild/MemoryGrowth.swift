// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// How far the memory of this process grows from now on.
struct MemoryGrowth {
    private let start: Int

    init() {
        #if os(Linux)
            // Forgets the peak of the past; where that is not allowed, the growth is only told as larger than it is.
            try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
            start = MemoryGrowth.bytes("VmRSS:")
        #else
            start = MemoryGrowth.greatest
        #endif
    }

    /// By how many bytes it has grown at most.
    var peak: Int {
        #if os(Linux)
            max(0, MemoryGrowth.bytes("VmHWM:") - start)
        #else
            // Darwin tells the greatest size only, so what the process had taken before is not counted twice.
            max(0, MemoryGrowth.greatest - start)
        #endif
    }

    #if os(Linux)
        private static func bytes(_ name: String) -> Int {
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
            return (Int(line.filter(\.isNumber)) ?? 0) << 10
        }
    #else
        private static var greatest: Int {
            var usage = rusage()
            getrusage(RUSAGE_SELF, &usage)
            return Int(usage.ru_maxrss)
        }
    #endif
}
