// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a server says about the next attempt, from all of its fields.
package struct ServerHint: Sendable, Hashable {
    /// How long to wait at least, counted from the receipt of the response; nil if nothing is asked.
    package var wait: Duration?
    /// Whether it asks not to retry.
    package var forbidsRetry: Bool

    /// A hint with these parts; by default empty.
    package init(wait: Duration? = nil, forbidsRetry: Bool = false) {
        self.wait = wait
        self.forbidsRetry = forbidsRetry
    }
}

extension RetryRules {
    /// What a response says about the next attempt, from the fields that these rules obey.
    ///
    /// Explicit waits come first: Retry-After and the vendors' fields, the longest of them. Without one, an exhausted quota counts
    /// (its longest reset), but not for a 3xx. Retry-After is read on every status: RFC 9110 §10.2.3 defines it for 503 and 3xx,
    /// RFC 6585 §4 for 429, RFC 9110 §15.5.14 for 413, and on any other failure a server that gives a time has a reason.
    ///
    /// - Parameters:
    ///   - head: a response that is a failure.
    ///   - receivedAt: when it arrived.
    package func hint(_ head: ResponseHead, receivedAt: Timestamp) -> ServerHint {
        let quota = head.status.isRedirection ? nil : quotaWait(head, receivedAt: receivedAt, assumesNothingLeft: true)
        return ServerHint(
            wait: askedWait(head, receivedAt: receivedAt) ?? quota,
            forbidsRetry: vendorHints.forbidsRetry(head.fields)
        )
    }

    /// The wait that the server asks for, counted from the receipt of its answer; nil if it asks for none.
    ///
    /// It is not limited here.
    package func serverDelay(_ failed: FailedExchange) -> Duration? {
        guard case .response(let head) = failed.outcome else { return nil }
        return hint(head, receivedAt: failed.receivedAt).wait
    }

    /// What a response says to the gates of its origin, other than that it arrived; nil: nothing.
    ///
    /// Called for every response, even successful ones: a RateLimit field with an exhausted quota closes a gate before a 429 does,
    /// for ``maxServerDelay`` at most, because it is a forecast. A 429 or 503 closes one for as long as its Retry-After asks.
    ///
    /// - Parameters:
    ///   - head: the response.
    ///   - receivedAt: when it arrived.
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

extension RetryRules {
    /// Decides when to follow a redirect; a pure function of its inputs.
    ///
    /// A redirect with Retry-After asks for a wait before the request to its target (RFC 9110 §10.2.3); fields of vendors are not
    /// read, since they are about sending the same request again. As after a failure, the wait is never shorter than that, up to
    /// half of it (5 s at most) is added at random, and a wait that does not fit the rules or the time left is not begun.
    ///
    /// - Parameters:
    ///   - redirect: the head of the 3xx response.
    ///   - receivedAt: when it arrived.
    ///   - timeLeft: what remains of the call's time; nil for no limit.
    ///   - generator: a source of randomness; seeded in tests.
    /// - Returns: `.retry` with the wait before the next hop, zero if none is asked for; `.stop` if the redirect must be returned
    ///   to the caller instead.
    package func decideFollowing(
        _ redirect: ResponseHead,
        receivedAt: Timestamp,
        timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        guard obeysRetryAfter, let asked = RetryAfter.delay(redirect.fields, receivedAt: receivedAt), asked > .zero
        else { return .retryNow }
        return wait(.zero, asked: asked, timeLeft: timeLeft, using: &generator)
    }
}

/// Fields other than Retry-After in which vendors say how long to wait; each is read only if it is turned on.
///
/// Numbers are decimal digits only; malformed values are ignored unless noted below.
public struct VendorHints: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    /// Hints from raw bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// `retry-after-ms` and `x-amz-retry-after`: milliseconds.
    public static let milliseconds = VendorHints(rawValue: 1)
    /// `grpc-retry-pushback-ms`: milliseconds; a negative or unreadable value forbids the retry.
    public static let pushback = VendorHints(rawValue: 2)
    /// `X-RateLimit-Reset`: a time or a number of seconds, distinguished by size. It is ambiguous, so check what your server means.
    ///
    /// Less than 10⁹ counts as seconds from now, less than 10¹¹ as seconds since 1970, more as milliseconds since 1970. It is not
    /// read if `X-RateLimit-Remaining` says that something is left.
    public static let rateLimitReset = VendorHints(rawValue: 4)
    /// `x-should-retry`: `false` forbids the retry; `true` promises nothing.
    public static let shouldRetry = VendorHints(rawValue: 8)

    /// All of them.
    public static let all: VendorHints = [.milliseconds, .pushback, .rateLimitReset, .shouldRetry]

    /// The explicit wait, the longest of several, minus the response's Age.
    func wait(_ fields: HeaderFields) -> Duration? {
        var names: [FieldName] = contains(.milliseconds) ? ["retry-after-ms", "x-amz-retry-after"] : []
        if contains(.pushback) { names.append(VendorHints.pushbackName) }
        let asked = names.flatMap { fields.values(of: $0) }.compactMap(VendorHints.milliseconds(of:))
        guard let longest = asked.max() else { return nil }
        let age = ResponseHead(status: .ok, fields: fields).age ?? 0
        return .milliseconds(max(0, longest - age * 1000))
    }

    /// Whether any of them says not to retry.
    func forbidsRetry(_ fields: HeaderFields) -> Bool {
        let isPushedBack =
            contains(.pushback)
            && fields.values(of: VendorHints.pushbackName).contains { VendorHints.milliseconds(of: $0) == nil }
        return isPushedBack
            || contains(.shouldRetry) && fields.values(of: "x-should-retry").contains { $0.loweringASCII() == "false" }
    }

    /// How long a quota stays exhausted, by `X-RateLimit-Reset`.
    ///
    /// - Parameter assumesNothingLeft: whether a missing `X-RateLimit-Remaining` counts as zero.
    /// - Returns: more than zero, or nil.
    func quotaWait(_ fields: HeaderFields, receivedAt: Timestamp, assumesNothingLeft: Bool) -> Duration? {
        guard contains(.rateLimitReset), let value = fields["X-RateLimit-Reset"],
            let number = FieldScanner.number(value.utf8, limit: .max)
        else { return nil }
        let remaining = fields["X-RateLimit-Remaining"].map { FieldScanner.number($0.utf8, limit: .max) }
        guard remaining.map({ $0 == 0 }) ?? assumesNothingLeft else { return nil }
        let clock = SenderClock(fields, receivedAt: receivedAt)
        let milliseconds: Int64 =
            switch number {
            case ..<RetryAfter.maximumSeconds: (number - clock.age) * 1000
            case ..<100_000_000_000: clock.now.millisecondsUntil(Timestamp(secondsSinceEpoch: number))
            default: clock.now.millisecondsUntil(Timestamp(millisecondsSinceEpoch: number))
            }
        return milliseconds > 0 ? .milliseconds(milliseconds) : nil
    }

    private static let pushbackName: FieldName = "grpc-retry-pushback-ms"

    private static func milliseconds(of value: String) -> Int64? {
        FieldScanner.number(value.utf8, limit: RetryAfter.maximumSeconds * 1000)
    }
}
