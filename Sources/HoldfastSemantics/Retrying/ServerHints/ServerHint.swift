// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a server says about the next attempt, all its fields taken together.
public struct ServerHint: Sendable, Hashable {
    /// How long to wait at least, counted from the receipt of the response; nil where nothing is asked.
    public var wait: Duration?
    /// Whether it asks not to be asked again.
    public var forbidsRetry: Bool

    /// A hint from its parts; nothing by default.
    public init(wait: Duration? = nil, forbidsRetry: Bool = false) {
        self.wait = wait
        self.forbidsRetry = forbidsRetry
    }
}

extension RetryRules {
    /// What a response says about the next attempt, by the fields that these rules obey.
    ///
    /// What is asked in so many words counts first: Retry-After and the vendors' waits, the longest of them. Where there
    /// is none, a quota with nothing left counts (its longest reset), but not on a redirect, which costs another request
    /// anyway. Retry-After is read on every status that is asked about: RFC 9110 §10.2.3 gives it a meaning for 503 and
    /// 3xx, RFC 6585 §4 for 429, RFC 9110 §15.5.14 for 413, and on any other failure a server that names a time has a
    /// reason.
    ///
    /// - Parameters:
    ///   - head: a response that is a failure or a redirect.
    ///   - receivedAt: when it came.
    public func hint(_ head: ResponseHead, receivedAt: Timestamp) -> ServerHint {
        let quota = head.status.isRedirection ? nil : quotaWait(head, receivedAt: receivedAt, assumesNothingLeft: true)
        return ServerHint(
            wait: askedWait(head, receivedAt: receivedAt) ?? quota,
            forbidsRetry: vendorHints.forbidsRetry(head.fields)
        )
    }

    /// The wait that the server asks for, counted from the receipt of its answer; nil where it asks for none.
    ///
    /// No limit is put to it here. It is read of a failed response and, before the redirect is followed, of a 3xx.
    public func serverDelay(_ failed: FailedExchange) -> Duration? {
        guard case .response(let head) = failed.outcome else { return nil }
        return hint(head, receivedAt: failed.receivedAt).wait
    }

    /// What a response tells the gates of its origin beyond that it came; nil: nothing.
    ///
    /// Asked of every response, also of good ones: a RateLimit field with nothing left closes a gate before a 429 does,
    /// for ``maxServerDelay`` at most, because it is a forecast. A 429 or 503 closes one for what its Retry-After asks,
    /// however long that is.
    ///
    /// - Parameters:
    ///   - head: the response.
    ///   - receivedAt: when it came.
    /// - Returns: a notice that asks for more than zero, counted from the receipt.
    package func gateNotice(_ head: ResponseHead, receivedAt: Timestamp) -> GateNotice? {
        guard closesGate else { return nil }
        let isThrottled = head.status == .tooManyRequests
        let isRefusal = isThrottled || head.status == .serviceUnavailable
        if isRefusal, let asked = askedWait(head, receivedAt: receivedAt) {
            return asked > .zero ? GateNotice(isThrottled ? .throttled : .unavailable, asked: asked) : nil
        }
        guard !head.status.isRedirection,
            let quota = quotaWait(head, receivedAt: receivedAt, assumesNothingLeft: isRefusal)
        else { return nil }
        let bounded = min(quota, maxServerDelay)
        guard bounded > .zero else { return nil }
        if isThrottled { return GateNotice(.throttled, asked: bounded) }
        return GateNotice(.quota, asked: bounded, partition: RateLimitQuota.partition(head.fields))
    }

    private func askedWait(_ head: ResponseHead, receivedAt: Timestamp) -> Duration? {
        let standard = obeysRetryAfter ? RetryAfter.delay(head.fields, receivedAt: receivedAt) : nil
        guard let vendor = vendorHints.wait(head.fields) else { return standard }
        return standard.map { max($0, vendor) } ?? vendor
    }

    private func quotaWait(_ head: ResponseHead, receivedAt: Timestamp, assumesNothingLeft: Bool) -> Duration? {
        let standard = obeysRateLimit ? RateLimitQuota.wait(head.fields) : nil
        let vendor = vendorHints.quotaWait(
            head.fields,
            receivedAt: receivedAt,
            assumesNothingLeft: assumesNothingLeft
        )
        guard let vendor else { return standard }
        return standard.map { max($0, vendor) } ?? vendor
    }
}
