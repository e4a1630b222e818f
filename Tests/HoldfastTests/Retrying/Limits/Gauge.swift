// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Synchronization

/// How many are inside, and how many were at most.
final class Gauge: Sendable {
    private let state = Mutex((inside: 0, highest: 0))

    var highest: Int { state.withLock { $0.highest } }

    func enter() {
        state.withLock { state in
            state.inside += 1
            state.highest = max(state.highest, state.inside)
        }
    }

    func leave() {
        state.withLock { $0.inside -= 1 }
    }
}
