// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("SpareDescriptors", .timeLimit(.minutes(20)))
struct SpareDescriptorsTests {
    @Test(
        "The last 32 descriptors are left to the system, of a few at most a quarter",
        arguments: [
            (1_024, 991, false), (1_024, 992, true), (128, 95, false), (128, 96, true), (20, 14, false), (20, 15, true),
            (2, 1, false), (Int.max, 1_000_000, false),
        ]
    )
    func last(_ limit: Int, _ descriptor: Int32, _ isLast: Bool) {
        #expect(SpareDescriptors.contains(descriptor, limit: limit) == isLast)
    }

    @Test("A process with few open files has descriptors")
    func free() {
        #expect(!SpareDescriptors.contains(3))
        #expect(!SpareDescriptors.areNext)
    }
}
