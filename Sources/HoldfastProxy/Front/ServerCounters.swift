// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Synchronization

    /// What a server and its connections count together.
    final class ServerCounters: Sendable {
        let isDraining = Atomic(false)
        private let begun = Atomic(0)
        private let underWay = Atomic(0)

        func begin() {
            begun.add(1, ordering: .relaxed)
            underWay.add(1, ordering: .relaxed)
        }

        func end() {
            underWay.subtract(1, ordering: .relaxed)
        }

        var requestsBegun: Int { begun.load(ordering: .relaxed) }
        var requestsUnderWay: Int { underWay.load(ordering: .relaxed) }
    }
#endif
