// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// One attempt of a call, for explanations.
public struct AttemptRecord: Sendable, Hashable {
    /// Its number; the first is 1.
    public let number: Int
    /// When it began and ended.
    public let start: MonotonicInstant
    public let end: MonotonicInstant
    /// The status it got, if a response came.
    public let status: StatusCode?
    /// The code of the error it ended with, if none came.
    public let errorCode: ServiceError.Code?
    /// How far the exchange came that ended with an error; nil where the transport did not say.
    public var progress: TransportProgress?
    /// What the failure proved; nil where there was none, or where no rules judged it.
    public var retryClass: RetryClass?
    /// The wait that followed before the next attempt; nil after the last.
    public var delay: Duration?
    /// How long the server asked to be left alone; nil where it did not.
    public var retryAfter: Duration?
    /// Why no attempt followed; nil where one did, or where none was needed.
    public var stopReason: StopReason?
    /// What was sent beneath for this attempt: hedges, or the attempts of a pipeline that is this one's transport.
    public var beneath: [AttemptRecord] = []

    init(
        number: Int,
        start: MonotonicInstant,
        end: MonotonicInstant,
        status: StatusCode? = nil,
        errorCode: ServiceError.Code? = nil,
        progress: TransportProgress? = nil,
        beneath: [AttemptRecord] = []
    ) {
        self.number = number
        self.start = start
        self.end = end
        self.status = status
        self.errorCode = errorCode
        self.progress = progress
        self.beneath = beneath
    }
}
