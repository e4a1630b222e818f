// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

extension StormFigures {
    /// Counts what a run's book holds.
    init(_ scenario: StormScenario, _ book: StormWorld.Book) {
        self.init()
        var book = book
        if scenario.warmUp > 0 {
            let start = Duration(boundedSeconds: scenario.warmUp)
            book.begun -= book.calls.count { $0.start < start }
            book.calls.removeAll { $0.start < start }
            book.attempts.removeAll { $0 < start }
        }
        let calls = book.calls
        requests = Double(calls.count)
        success = StormFigures.successShare(calls)
        let successes = calls.filter(\.succeeded).map { ($0.end - $0.start).doubleSeconds }.sorted()
        let failures = calls.filter { !$0.succeeded }.map { ($0.end - $0.start).doubleSeconds }.sorted()
        medianSuccessSeconds = StormFigures.quantile(successes, 0.5)
        p99SuccessSeconds = StormFigures.quantile(successes, 0.99)
        p99FailureSeconds = StormFigures.quantile(failures, 0.99)
        load = calls.isEmpty ? 0 : Double(book.attempts.count) / Double(calls.count)
        wastedWork = Double(book.wasted)
        earlySends = Double(book.earlySends)
        closedSeconds = book.closedTime.doubleSeconds
        stranded = Double(book.begun - calls.count)
        if scenario.isBurst {
            lastSuccessSeconds = calls.last { $0.succeeded }?.end.doubleSeconds
        }
        if let singled = scenario.faults.compactMap(\.resources).max() {
            let healthy = calls.filter { $0.resource >= singled }
            healthySuccess = StormFigures.successShare(healthy)
            let lengths = healthy.filter(\.succeeded).map { ($0.end - $0.start).doubleSeconds }.sorted()
            healthyP99SuccessSeconds = StormFigures.quantile(lengths, 0.99)
        }
        let window = scenario.faultWindow
        if let window { countFault(window, book) }
        let end = window?.upperBound ?? 0
        guard end < scenario.horizon else { return }
        peakRate = StormFigures.peakRate(book.attempts, from: end, bins: 10)
        peakSecondRate = StormFigures.peakRate(book.attempts, from: end, bins: 1)
        if window != nil, !scenario.isBurst { countRecovery(from: end, horizon: scenario.horizon, calls) }
    }

    private mutating func countFault(_ window: Range<Double>, _ book: StormWorld.Book) {
        let within = book.calls.filter { window.contains($0.start.doubleSeconds) }
        guard !within.isEmpty else { return }
        successInFault = StormFigures.successShare(within)
        let attempts = book.attempts.count { window.contains($0.doubleSeconds) }
        loadInFault = Double(attempts) / Double(within.count)
    }

    private mutating func countRecovery(from end: Double, horizon: Double, _ calls: [StormWorld.Call]) {
        var begun: [Int: (all: Int, succeeded: Int)] = [:]
        for call in calls {
            let second = Int(call.start.components.seconds)
            begun[second, default: (0, 0)].all += 1
            if call.succeeded { begun[second, default: (0, 0)].succeeded += 1 }
        }
        let first = Int(end)
        let found = (first..<max(first, Int(horizon) - 5)).first { start in
            (start..<start + 5).allSatisfy { second in
                let (all, succeeded) = begun[second] ?? (0, 0)
                return Double(succeeded) >= 0.99 * Double(all)
            }
        }
        recovers = found != nil
        recoverySeconds = found.map { max(0, Double($0) - end) }
    }

    private static func successShare(_ calls: [StormWorld.Call]) -> Double {
        calls.isEmpty ? 0 : Double(calls.count { $0.succeeded }) / Double(calls.count)
    }

    /// The element of a sorted list below which a share of it lies; nil of an empty one.
    private static func quantile(_ sorted: [Double], _ share: Double) -> Double? {
        sorted.isEmpty ? nil : sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }

    /// The most attempts of a bin of time, as a rate; so many bins a second.
    private static func peakRate(_ attempts: [Duration], from start: Double, bins: Int64) -> Double {
        var counts: [Int64: Int] = [:]
        for attempt in attempts where attempt.doubleSeconds >= start {
            let (seconds, attoseconds) = attempt.components
            counts[seconds * bins + attoseconds / (1_000_000_000_000_000_000 / bins), default: 0] += 1
        }
        return Double(counts.values.max() ?? 0) * Double(bins)
    }
}
