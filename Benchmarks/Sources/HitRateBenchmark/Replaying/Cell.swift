// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSimulation

/// The result of one subject at one size on one trace.
struct Cell: Sendable {
    let subject: Subject
    let size: CacheSize
    let result: HitRateResult
    /// Requests per second of processor time.
    let requestsPerSecond: Double

    /// Replays a whole trace synchronously.
    ///
    /// - Parameters:
    ///   - bound: Created from the same trace; nil if no subject needs it. A subject that needs it is then not run.
    ///   - rate: The share of all keys that the trace contains.
    init?(
        _ subject: Subject,
        _ size: CacheSize,
        _ trace: RequestTrace,
        _ bound: BeladyBound?,
        rate: Double,
        _ plan: Plan,
        progress: (Int) -> Void
    ) {
        self.subject = subject
        self.size = size
        let capacity = size.bytes(uniqueBytes: trace.uniqueBytes, rate: rate)
        let start = Self.processorSeconds()
        switch subject.form {
        case .policy(let strategy):
            var simulator = HitRateSimulator(
                warmUp: Int(Double(trace.requests.count) * plan.warmUp),
                sizesTellVersions: plan.sizesTellVersions
            )
            simulator.add(strategy, capacity: capacity, seed: plan.seed)
            var before = 0
            simulator.replay(trace) { done in
                progress(done - before)
                before = done
            }
            result = simulator.results[0]
        case .bound(let rule):
            guard let bound else { return nil }
            result = bound.replay(rule, capacity: capacity)
            progress(trace.requests.count)
        }
        let seconds = Self.processorSeconds() - start
        requestsPerSecond = seconds > 0 ? Double(trace.requests.count) / seconds : .infinity
    }

    /// The processor time of this thread in seconds, which other processes do not affect.
    private static func processorSeconds() -> Double {
        var time = timespec()
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
