// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("The memory of this machine")
struct MachineMemoryTests {
    @Test("The line MemAvailable of /proc/meminfo")
    func line() {
        #expect(MachineMemory.available(in: "MemTotal:  900 kB\nMemAvailable:     300 kB\n") == 307_200)
    }

    @Test(
        "Other lines are ignored",
        arguments: ["", "MemFree: 5 kB\n", "MemAvailable: x kB\n", "MemAvailable: 5 MB\n"]
    )
    func noLine(text: String) {
        #expect(MachineMemory.available(in: text) == nil)
    }

    @Test("There is some memory")
    func some() {
        #expect(MachineMemory.available > 0)
    }
}
