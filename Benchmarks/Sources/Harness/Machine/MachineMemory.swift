// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The memory of this machine.
public enum MachineMemory {
    /// The bytes available to programs without evicting anything; if unknown, half of the physical memory.
    public static var available: Int {
        let text = FileManager.default.contents(atPath: "/proc/meminfo").flatMap { String(bytes: $0, encoding: .utf8) }
        return text.flatMap(available) ?? Int(ProcessInfo.processInfo.physicalMemory / 2)
    }

    /// Reads the line `MemAvailable: N kB`.
    static func available(in text: String) -> Int? {
        for line in text.split(separator: "\n") where line.hasPrefix("MemAvailable:") {
            let fields = line.split(whereSeparator: \.isWhitespace)
            guard fields.count == 3, fields[2] == "kB", let count = Int(fields[1]) else { return nil }
            return count * 1_024
        }
        return nil
    }
}
