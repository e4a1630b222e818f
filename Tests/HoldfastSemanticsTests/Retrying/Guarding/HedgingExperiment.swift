// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

/// A server whose answers take random times, and clients that hedge by ``HedgeState``: experiment E8 in virtual time.
struct HedgingExperiment {
    struct Result {
        var lengths: [Duration] = []
        var hedges = 0

        /// The least length that `share` of the answers did not exceed.
        func percentile(_ share: Double) -> Duration {
            let sorted = lengths.sorted()
            return sorted[min(sorted.count - 1, Int((share * Double(sorted.count)).rounded(.up)) - 1)]
        }

        var extraLoad: Double { Double(hedges) / Double(lengths.count) }
    }

    private enum Happening {
        case late(began: Duration, delay: Duration, first: Duration, second: Duration)
        case end(length: Duration, first: Duration, wasLate: Bool)
    }

    /// Sends `count` requests, one each `gap`, and returns what became of those from `measuredFrom` on.
    ///
    /// - Parameter length: how long a copy takes that is sent at a time.
    static func run(
        count: Int,
        gap: Duration,
        rules: HedgeRules?,
        measuredFrom: Int = 0,
        seed: UInt64,
        length: (Duration, inout SeededGenerator) -> Duration
    ) -> Result {
        var generator = SeededGenerator(seed: seed)
        var state = HedgeState(rules ?? HedgeRules(), now: .zero)
        var result = Result()
        var agenda: [(time: Duration, isMeasured: Bool, what: Happening)] = []

        func schedule(_ time: Duration, _ isMeasured: Bool, _ what: Happening) {
            let index = agenda.lastIndex { $0.time <= time }.map { $0 + 1 } ?? 0
            agenda.insert((time, isMeasured, what), at: index)
        }
        func happen(until limit: Duration) {
            while let next = agenda.first, next.time <= limit {
                agenda.removeFirst()
                switch next.what {
                case .late(let began, let delay, let first, let second):
                    let isHedged = state.permitHedge()
                    if isHedged, next.isMeasured { result.hedges += 1 }
                    let total = isHedged ? min(first, delay + second) : first
                    schedule(began + total, next.isMeasured, .end(length: total, first: first, wasLate: true))
                case .end(let length, let first, let wasLate):
                    state.attemptEnded(length: min(first, length), succeeded: true, wasLate: wasLate, now: next.time)
                    if next.isMeasured { result.lengths.append(length) }
                }
            }
        }

        for index in 0..<count {
            let now = gap * index
            happen(until: now)
            let first = length(now, &generator)
            let isMeasured = index >= measuredFrom
            guard rules != nil else {
                result.lengths.append(first)
                continue
            }
            let delay = state.attemptBegan(now: now)
            if let delay, delay < first {
                let second = length(now + delay, &generator)
                schedule(now + delay, isMeasured, .late(began: now, delay: delay, first: first, second: second))
            } else {
                schedule(now + first, isMeasured, .end(length: first, first: first, wasLate: false))
            }
        }
        happen(until: .seconds(1 << 40))
        return result
    }
}
