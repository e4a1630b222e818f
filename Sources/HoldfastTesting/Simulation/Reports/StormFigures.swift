// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What came of a run, or of the mean of several.
///
/// Times are in seconds of the virtual clock. "In the fault" is the span from the first fault's start to the last one's end;
/// what needs it is nil for a scenario without faults.
public struct StormFigures: Sendable, Hashable, Codable {
    /// Calls that ended.
    public var requests = 0.0
    /// The share of them that got a response with a status from 200 to 299.
    public var success = 0.0
    /// The same of those that began in the fault.
    public var successInFault: Double?
    /// The median time of the successes; nil without any.
    public var medianSuccessSeconds: Double?
    /// The 99th percentile of the successes.
    public var p99SuccessSeconds: Double?
    /// The 99th percentile of the failures: how long callers waited for nothing.
    public var p99FailureSeconds: Double?
    /// Attempts by calls.
    public var load = 0.0
    /// Attempts sent in the fault by calls begun in it.
    public var loadInFault: Double?
    /// From the end of the last fault to the first of five seconds in a row of whose calls 99 % succeed; nil where
    /// ``recovers`` says false, and where nothing can be said: for a burst, and a fault that lasts to the horizon.
    public var recoverySeconds: Double?
    /// Whether there were such five seconds; in a mean, in every run.
    public var recovers: Bool?
    /// The most attempts of a tenth of a second after the faults, by the second: what the server meets as it returns.
    public var peakRate: Double?
    /// The most attempts of a whole second after the faults.
    public var peakSecondRate: Double?
    /// Of the calls to resources that no fault singles out: the share that succeeded, where one singles out others.
    public var healthySuccess: Double?
    /// The 99th percentile of these.
    public var healthyP99SuccessSeconds: Double?
    /// When the last call of a burst succeeded; nil where none did.
    public var lastSuccessSeconds: Double?
    /// Requests that were served after their sender had given up.
    public var wastedWork = 0.0
    /// Attempts sent by a process that had been told to wait (429 with Retry-After; for one resource: 503) before that time
    /// had come, and refused.
    public var earlySends = 0.0
    /// How long processes had been told to wait, added up over all of them, and over their resources.
    public var closedSeconds = 0.0
    /// Calls that never ended: a fault of the retrier, which waits for what does not come.
    public var stranded = 0.0

    init() {}

    /// The mean of several; what is missing in all is missing, and else the mean is of those that have it.
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
}
