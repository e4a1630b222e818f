// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Fields beside Retry-After by which vendors say how long to wait; each is read only where it is switched on.
///
/// Numbers are decimal digits and nothing else; what is malformed is ignored unless it says otherwise below.
public struct VendorHints: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    /// Hints from their raw bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// `retry-after-ms` and `x-amz-retry-after`: milliseconds.
    public static let milliseconds = VendorHints(rawValue: 1)
    /// `grpc-retry-pushback-ms`: milliseconds; a negative or unreadable value forbids the retry.
    public static let pushback = VendorHints(rawValue: 2)
    /// `X-RateLimit-Reset`: a time or a number of seconds, told apart by its size; ambiguous, so mind the server.
    ///
    /// Less than 10⁹ counts as seconds from now, less than 10¹¹ as seconds since 1970, more as milliseconds since 1970. It
    /// is not read where `X-RateLimit-Remaining` says that something is left.
    public static let rateLimitReset = VendorHints(rawValue: 4)
    /// `x-should-retry`: `false` forbids the retry; `true` promises nothing.
    public static let shouldRetry = VendorHints(rawValue: 8)

    /// All of them.
    public static let all: VendorHints = [.milliseconds, .pushback, .rateLimitReset, .shouldRetry]
}

extension VendorHints {
    /// The wait that is asked for in so many words, the longest of them, less the response's Age.
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

    /// How long a quota stays used up by `X-RateLimit-Reset`.
    ///
    /// - Parameter assumesNothingLeft: what is made of a missing `X-RateLimit-Remaining`.
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
