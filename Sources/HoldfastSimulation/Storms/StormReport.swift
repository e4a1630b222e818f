// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// The result of one run.
public struct StormReport: Sendable, Hashable, Codable {
    /// What happened in one second of a run.
    public struct Second: Sendable, Hashable, Codable {
        /// Calls that began.
        public var begun = 0
        /// Those of them that succeeded, at any time.
        public var succeeded = 0
        /// Attempts sent.
        public var attempts = 0

        /// A second.
        public init(begun: Int = 0, succeeded: Int = 0, attempts: Int = 0) {
            self.begun = begun
            self.succeeded = succeeded
            self.attempts = attempts
        }
    }

    /// The scenario's name.
    public let scenario: String
    /// The seed.
    public let seed: UInt64
    /// The figures.
    public let figures: StormFigures
    /// The run second by second, from the first to the last second with an event.
    public let seconds: [Second]
    /// A hash of all events with their times, in hexadecimal: equal for equal runs.
    public let fingerprint: String

    init(_ scenario: StormScenario, seed: UInt64, book: StormWorld.Book) {
        self.scenario = scenario.name
        self.seed = seed
        fingerprint = String(book.fingerprint, radix: 16)
        seconds = StormReport.seconds(of: book)
        figures = StormFigures(scenario, book: book)
    }

    private static func seconds(of book: StormWorld.Book) -> [Second] {
        let last = max(book.attempts.last ?? .zero, book.calls.last?.end ?? .zero)
        var seconds = Array(repeating: Second(), count: Int(last.components.seconds) + 1)
        for attempt in book.attempts { seconds[Int(attempt.components.seconds)].attempts += 1 }
        for call in book.calls {
            seconds[Int(call.start.components.seconds)].begun += 1
            if call.succeeded { seconds[Int(call.start.components.seconds)].succeeded += 1 }
        }
        return seconds
    }
}

extension [StormReport] {
    /// The mean over the runs.
    public var figures: StormFigures { StormFigures(meanOf: map(\.figures)) }
}

/// The results of a run, or the mean of several.
///
/// Times are in seconds of the virtual clock. "In the fault" is the period from the first fault's start to the last one's end;
/// values that need it are nil for a scenario without faults.
public struct StormFigures: Sendable, Hashable, Codable {
    /// Calls that ended.
    public var requests = 0.0
    /// The share of them that got a response with a status from 200 to 299.
    public var success = 0.0
    /// The same for calls that began in the fault.
    public var successInFault: Double?
    /// The median duration of successful calls; nil if there were none.
    public var medianSuccessSeconds: Double?
    /// The 99th percentile of the durations of successful calls.
    public var p99SuccessSeconds: Double?
    /// The 99th percentile of the durations of failed calls: how long callers waited for nothing.
    public var p99FailureSeconds: Double?
    /// Attempts per call.
    public var load = 0.0
    /// Attempts per call in the fault, for calls that began in it.
    public var loadInFault: Double?
    /// From the end of the last fault to the first of five consecutive seconds whose calls succeed by 99 %. Nil if ``recovers`` is
    /// false, and if it is undefined: for a burst, and for a fault that lasts to the horizon.
    public var recoverySeconds: Double?
    /// Whether there were such five seconds; for a mean, whether there were in every run.
    public var recovers: Bool?
    /// The most attempts in a tenth of a second after the faults, per second: the load when the server returns.
    public var peakRate: Double?
    /// The most attempts in a whole second after the faults.
    public var peakSecondRate: Double?
    /// The share of calls that succeeded among those to resources that no fault affects, if a fault affects only some.
    public var healthySuccess: Double?
    /// The 99th percentile of the durations of these successful calls.
    public var healthyP99SuccessSeconds: Double?
    /// When the last call of a burst succeeded; nil if none did.
    public var lastSuccessSeconds: Double?
    /// Requests served after their sender had given up.
    public var wastedWork = 0.0
    /// Attempts that were refused and that a process sent before the time that it had been told to wait for (429 with Retry-After;
    /// for one resource: 503).
    public var earlySends = 0.0
    /// How long processes had been told to wait, summed over all of them and their resources.
    public var closedSeconds = 0.0
    /// Calls that never ended: a bug in the retrier, which waits for something that does not happen.
    public var stranded = 0.0

    init() {}

    /// The mean of several; a value that is missing in some is the mean of the others, and missing if all lack it.
    public init(meanOf all: [StormFigures]) {
        func mean(_ value: (StormFigures) -> Double?) -> Double? {
            let found = all.compactMap(value)
            return found.isEmpty ? nil : found.reduce(0, +) / Double(found.count)
        }
        requests = mean(\.requests) ?? 0
        success = mean(\.success) ?? 0
        successInFault = mean(\.successInFault)
        medianSuccessSeconds = mean(\.medianSuccessSeconds)
        p99SuccessSeconds = mean(\.p99SuccessSeconds)
        p99FailureSeconds = mean(\.p99FailureSeconds)
        load = mean(\.load) ?? 0
        loadInFault = mean(\.loadInFault)
        let answers = all.compactMap(\.recovers)
        recovers = answers.isEmpty ? nil : answers.allSatisfy { $0 }
        recoverySeconds = recovers == false ? nil : mean(\.recoverySeconds)
        peakRate = mean(\.peakRate)
        peakSecondRate = mean(\.peakSecondRate)
        healthySuccess = mean(\.healthySuccess)
        healthyP99SuccessSeconds = mean(\.healthyP99SuccessSeconds)
        lastSuccessSeconds = mean(\.lastSuccessSeconds)
        wastedWork = mean(\.wastedWork) ?? 0
        earlySends = mean(\.earlySends) ?? 0
        closedSeconds = mean(\.closedSeconds) ?? 0
        stranded = mean(\.stranded) ?? 0
    }

    /// Computes the figures from a run's records.
    init(_ scenario: StormScenario, book: StormWorld.Book) {
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
        medianSuccessSeconds = StormFigures.quantile(successes, share: 0.5)
        p99SuccessSeconds = StormFigures.quantile(successes, share: 0.99)
        p99FailureSeconds = StormFigures.quantile(failures, share: 0.99)
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
            healthyP99SuccessSeconds = StormFigures.quantile(lengths, share: 0.99)
        }
        let window = scenario.faultWindow
        if let window { countFault(window, book: book) }
        let end = window?.upperBound ?? 0
        guard end < scenario.horizon else { return }
        peakRate = StormFigures.peakRate(book.attempts, from: end, bins: 10)
        peakSecondRate = StormFigures.peakRate(book.attempts, from: end, bins: 1)
        if window != nil, !scenario.isBurst { countRecovery(from: end, horizon: scenario.horizon, calls) }
    }

    private mutating func countFault(_ window: Range<Double>, book: StormWorld.Book) {
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
        let found = (first..<max(first, Int(horizon) - 4)).first { start in
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

    /// The element of a sorted list below which this share of it is; nil for an empty one.
    private static func quantile(_ sorted: [Double], share: Double) -> Double? {
        sorted.isEmpty ? nil : sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }

    /// The most attempts in a bin, as a rate; there are this many bins per second.
    private static func peakRate(_ attempts: [Duration], from start: Double, bins: Int64) -> Double {
        var counts: [Int64: Int] = [:]
        for attempt in attempts where attempt.doubleSeconds >= start {
            let (seconds, attoseconds) = attempt.components
            counts[seconds * bins + attoseconds / (1_000_000_000_000_000_000 / bins), default: 0] += 1
        }
        return Double(counts.values.max() ?? 0) * Double(bins)
    }
}
