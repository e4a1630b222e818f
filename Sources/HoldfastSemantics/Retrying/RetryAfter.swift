// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads Retry-After (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The largest number of seconds; policies set their own limit far below.
    package static let maximumSeconds: Int64 = 1_000_000_000

    /// The wait that the server asks for, counted from the receipt of the response.
    ///
    /// Seconds are decimal digits only, minus the response's Age if a cache was in between. A date, in any of the three forms, is
    /// compared with the response's own Date and Age, so that a wrong clock on either side does no harm; without Date, with the
    /// time of receipt. Anything else is ignored. Of several valid lines, even if joined by commas, the longest wait counts, so
    /// that every line is respected.
    ///
    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - receivedAt: when it arrived.
    /// - Returns: the wait, never negative; nil if the field is missing or malformed.
    package static func delay(_ fields: HeaderFields, receivedAt: Timestamp) -> Duration? {
        let lines = fields.values(of: .retryAfter)
        guard !lines.isEmpty else { return nil }
        let clock = SenderClock(fields, receivedAt: receivedAt)
        let waits = lines.lazy.compactMap { wait(of: $0, clock: clock, receivedAt: receivedAt) }
        return waits.max().map { .milliseconds($0) }
    }

    /// The longest wait of a line in milliseconds, which a client may have joined from several lines (RFC 9110 §5.2); nil if a part
    /// of it is neither a number nor a date.
    private static func wait(of line: String, clock: SenderClock, receivedAt: Timestamp) -> Int64? {
        // Nearly every line is one number.
        if let wait = wait(ofSeconds: line[...], age: clock.age) { return wait }
        var parts = line.split(separator: ",")[...]
        var longest: Int64?
        while let part = parts.popFirst().map({ trimmed($0) }) {
            if let wait = wait(ofSeconds: part, age: clock.age) {
                longest = max(longest ?? 0, wait)
                continue
            }
            var date = HTTPDate(String(part), receivedAt: receivedAt)
            if date == nil, let rest = parts.popFirst() {
                // Two of the three forms have a comma after the day's name.
                date = HTTPDate("\(part), \(trimmed(rest))", receivedAt: receivedAt)
            }
            guard let date else { return nil }
            longest = max(longest ?? 0, clock.now.millisecondsUntil(date.timestamp), 0)
        }
        return longest
    }

    private static func wait(ofSeconds text: Substring, age: Int64) -> Int64? {
        FieldScanner.number(text.utf8, limit: maximumSeconds).map { max(0, ($0 - age) * 1000) }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let rest = text.drop { $0 == " " || $0 == "\t" }
        return rest.lastIndex { $0 != " " && $0 != "\t" }.map { rest[...$0] } ?? ""
    }
}

/// The server's clock at the moment its response arrived, according to the response itself.
///
/// Date has whole, truncated seconds, so a wait until an instant on this clock is up to a second too long and never too short.
struct SenderClock {
    /// How long ago the response was created, in seconds: 0 unless a cache was in between.
    let age: Int64
    /// The time by the server's clock, or by ours if the response does not give it.
    let now: Timestamp

    init(_ fields: HeaderFields, receivedAt: Timestamp) {
        let head = ResponseHead(status: .serviceUnavailable, fields: fields)
        age = head.age ?? 0
        now = head.date(receivedAt: receivedAt)?.timestamp.advanced(byMilliseconds: age * 1000) ?? receivedAt
    }
}

/// What a server says is left of a quota (draft-ietf-httpapi-ratelimit-headers, and the three fields of its first drafts).
///
/// A quota that is left promises nothing; an exhausted one says that a request before the reset would be refused. Malformed values
/// are ignored, as the draft requires. The problem types of the draft are in the response's content and are not read.
package struct RateLimitQuota: Sendable, Hashable {
    /// The name of the policy; empty for the first drafts, which have none.
    package var policy: String
    /// What is left, in the policy's unit; not negative.
    package var remaining: Int64
    /// In how many seconds more will be left, counted from the creation of the response; nil if not given.
    package var reset: Int64?

    /// A quota from its parts.
    package init(policy: String, remaining: Int64, reset: Int64?) {
        self.policy = policy
        self.remaining = remaining
        self.reset = reset
    }

    /// The quotas in a response, in order.
    ///
    /// A member of `RateLimit` whose `r` or `t` is not a number counts as malformed. Policies that count concurrent requests are
    /// skipped: they have more left when a request ends, not after a wait. `RateLimit-Remaining` and `RateLimit-Reset` are read if
    /// `RateLimit` gives nothing.
    package static func read(_ fields: HeaderFields) -> [RateLimitQuota] {
        let current = members(fields)
        return current.isEmpty ? older(fields).map { [$0] } ?? [] : current
    }

    /// How long nothing is left: the longest reset of the exhausted quotas, minus the response's Age.
    ///
    /// - Returns: more than zero; nil if every quota has something left or does not say when it resets.
    package static func wait(_ fields: HeaderFields) -> Duration? {
        // Called for every response, and most have no such field: comparing the first bytes of the names is all they cost.
        let tells = fields.contains { line in
            let name = line.name.canonicalName.utf8
            return name.first == UInt8(ascii: "r") && name.starts(with: "ratelimit".utf8)
        }
        guard tells else { return nil }
        let resets = read(fields).compactMap { $0.remaining == 0 ? $0.reset : nil }
        guard let longest = resets.max() else { return nil }
        let left = min(longest, RetryAfter.maximumSeconds) - (ResponseHead(status: .ok, fields: fields).age ?? 0)
        return left > 0 ? .seconds(left) : nil
    }

    /// The partition key of the quotas in a response, as a hash; nil if it does not give one (`pk`), or gives several.
    static func partition(_ fields: HeaderFields) -> Int? {
        guard let value = fields["RateLimit"], let list = try? StructuredList(parsing: value) else { return nil }
        let keys = Set(
            list.members.compactMap { member -> [UInt8]? in
                guard case .byteSequence(let key) = member.item?.parameters["pk"] else { return nil }
                return Array(key)
            }
        )
        return keys.count == 1 ? keys.first?.hashValue : nil
    }

    private static func members(_ fields: HeaderFields) -> [RateLimitQuota] {
        guard let value = fields["RateLimit"], let list = try? StructuredList(parsing: value) else { return [] }
        let concurrent = concurrentPolicies(fields)
        return list.members.compactMap { member in
            guard let item = member.item, let policy = name(item), !concurrent.contains(policy),
                case .integer(let remaining) = item.parameters["r"], remaining >= 0
            else { return nil }
            guard let reset = item.parameters["t"] else {
                return RateLimitQuota(policy: policy, remaining: remaining, reset: nil)
            }
            guard case .integer(let seconds) = reset, seconds >= 0 else { return nil }
            return RateLimitQuota(policy: policy, remaining: remaining, reset: seconds)
        }
    }

    private static func concurrentPolicies(_ fields: HeaderFields) -> Set<String> {
        guard let value = fields["RateLimit-Policy"], let list = try? StructuredList(parsing: value) else { return [] }
        return Set(
            list.members.compactMap { member in
                guard let item = member.item, case .string("concurrent-requests") = item.parameters["qu"] else {
                    return nil
                }
                return name(item)
            }
        )
    }

    /// The policy's name: a String, or a Token in older drafts.
    private static func name(_ item: StructuredItem) -> String? {
        switch item.value {
        case .string(let name), .token(let name): name
        default: nil
        }
    }

    private static func older(_ fields: HeaderFields) -> RateLimitQuota? {
        guard let remaining = fields["RateLimit-Remaining"], let reset = fields["RateLimit-Reset"],
            let left = FieldScanner.number(remaining.utf8, limit: .max),
            let seconds = FieldScanner.number(reset.utf8, limit: RetryAfter.maximumSeconds)
        else { return nil }
        return RateLimitQuota(policy: "", remaining: left, reset: seconds)
    }
}
