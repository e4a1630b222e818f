// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The speed of one origin, and what its hedges may cost.
final class HedgePace: Sendable {
    private let state: Mutex<HedgeState>

    init(_ rules: HedgeRules, now: MonotonicInstant) {
        state = Mutex(HedgeState(rules, now: now.sinceOrigin))
    }

    func attemptBegan(now: MonotonicInstant) -> Duration? {
        state.withLock { $0.attemptBegan(now: now.sinceOrigin) }
    }

    func permitHedge(isFirst: Bool) -> Bool {
        state.withLock { $0.permitHedge(isFirst: isFirst) }
    }

    func giveBack() {
        state.withLock { $0.giveBack() }
    }

    func attemptEnded(length: Duration, succeeded: Bool, wasLate: Bool, now: MonotonicInstant) {
        state.withLock {
            $0.attemptEnded(length: length, succeeded: succeeded, wasLate: wasLate, now: now.sinceOrigin)
        }
    }
}
