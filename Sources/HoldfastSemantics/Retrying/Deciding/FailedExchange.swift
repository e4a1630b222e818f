// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A failed attempt as the rules of retrying look at it.
public struct FailedExchange: Sendable, Hashable {
    /// How the attempt ended.
    public var outcome: AttemptOutcome
    /// The request's method.
    public var method: RequestMethod
    /// The request's fields as they were sent.
    public var fields: HeaderFields
    /// The number of the attempt that ended; the first is 1.
    public var attempt: Int
    /// Whether the content can be sent from its start again; true for no content.
    public var bodyIsReplayable: Bool
    /// The caller's word on idempotency; nil leaves it to the method and the Idempotency-Key.
    public var declaredIdempotent: Bool?
    /// What remains of the call's time; nil for no limit.
    public var timeLeft: Duration?
    /// When the outcome came.
    public var receivedAt: Timestamp
    /// Whether the layer beneath has retried already and given up.
    public var wasRetriedBeneath = false

    /// A failed attempt; what is not named has its harmless value.
    public init(
        _ outcome: AttemptOutcome,
        method: RequestMethod,
        fields: HeaderFields = HeaderFields(),
        attempt: Int = 1,
        bodyIsReplayable: Bool = true,
        declaredIdempotent: Bool? = nil,
        timeLeft: Duration? = nil,
        receivedAt: Timestamp
    ) {
        self.outcome = outcome
        self.method = method
        self.fields = fields
        self.attempt = attempt
        self.bodyIsReplayable = bodyIsReplayable
        self.declaredIdempotent = declaredIdempotent
        self.timeLeft = timeLeft
        self.receivedAt = receivedAt
    }
}
