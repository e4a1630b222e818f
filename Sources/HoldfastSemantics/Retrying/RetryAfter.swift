// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads Retry-After (RFC 9110 §10.2.3).
public enum RetryAfter {
    /// Where a number of seconds saturates; policies set their own limit far below.
    public static let maximumSeconds: Int64 = 1_000_000_000

    /// The wait the server asks for, counted from the receipt of the response.
    ///
    /// Seconds are decimal digits and nothing else, less the response's Age where a cache stood between. A date, in any
    /// of the three forms, is taken against the response's own Date and Age, so that a wrong clock on either side does
    /// no harm; against the time of receipt where Date is missing. What is neither is ignored; of several valid lines, also
    /// where they arrive joined by commas, the longest wait counts, so that no line is disobeyed.
    ///
    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - receivedAt: when it came.
    /// - Returns: the wait, never negative; nil when the field is missing or malformed.
    public static func delay(_ fields: HeaderFields, receivedAt: Timestamp) -> Duration? {
        let lines = fields.values(of: .retryAfter)
        guard !lines.isEmpty else { return nil }
        let clock = SenderClock(fields, receivedAt: receivedAt)
        var longest: Int64?
        for line in lines {
            let milliseconds: Int64
            if let seconds = seconds(line) {
                milliseconds = (seconds - clock.age) * 1000
            } else if let date = HTTPDate(line, receivedAt: receivedAt) {
                milliseconds = clock.now.millisecondsUntil(date.timestamp)
            } else {
                continue
            }
            longest = max(longest ?? 0, milliseconds, 0)
        }
        return longest.map { .milliseconds($0) }
    }

    /// The seconds of a line, or the most of several that a client has joined to one line (RFC 9110 §5.2).
    private static func seconds(_ line: String) -> Int64? {
        if let seconds = FieldScanner.number(line.utf8, limit: maximumSeconds) { return seconds }
        guard line.utf8.first.map({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) ?? false else { return nil }
        var longest: Int64?
        for member in line.split(separator: ",") {
            let text = member.drop { $0 == " " || $0 == "\t" }
            let end = text.lastIndex { $0 != " " && $0 != "\t" }.map(text.index(after:)) ?? text.startIndex
            guard let seconds = FieldScanner.number(text[..<end].utf8, limit: maximumSeconds) else { return nil }
            longest = max(longest ?? 0, seconds)
        }
        return longest
    }
}

/// The server's clock at the moment its response came, as the response itself shows it.
///
/// Date counts whole seconds, cut off, so a wait up to an instant on this clock is up to a second too long and never too
/// short.
struct SenderClock {
    /// How long ago the response was made, in seconds: 0 unless a cache stood between.
    let age: Int64
    /// The time by the server's clock, or by ours where it does not tell.
    let now: Timestamp

    init(_ fields: HeaderFields, receivedAt: Timestamp) {
        let head = ResponseHead(status: .serviceUnavailable, fields: fields)
        age = head.age ?? 0
        now = head.date(receivedAt: receivedAt)?.timestamp.advanced(byMilliseconds: age * 1000) ?? receivedAt
    }
}

/// What a server says is left of a quota (draft-ietf-httpapi-ratelimit-headers, and the three fields of its first drafts).
///
/// Something left promises nothing; nothing left says that a request before the reset would be refused. What is malformed
/// is ignored, as the draft asks. The problem types of the draft stand in the response's content and are not read.
public struct RateLimitQuota: Sendable, Hashable {
    /// The name of the policy; empty in the form of the first drafts, which have none.
    public var policy: String
    /// What is left, in the policy's unit; not negative.
    public var remaining: Int64
    /// In how many seconds more will be left, counted from the making of the response; nil where it is not said.
    public var reset: Int64?

    /// A quota from its parts.
    public init(policy: String, remaining: Int64, reset: Int64?) {
        self.policy = policy
        self.remaining = remaining
        self.reset = reset
    }

    /// The quotas that a response tells of, in their order.
    ///
    /// A member of `RateLimit` whose `r` is no number counts as malformed, and so does one whose `t` is none. Policies
    /// that count requests at the same time are left out: what they lack comes back when a request ends, not by waiting.
    /// `RateLimit-Remaining` and `RateLimit-Reset` are read where `RateLimit` tells nothing.
    public static func read(_ fields: HeaderFields) -> [RateLimitQuota] {
        let current = members(fields)
        return current.isEmpty ? older(fields).map { [$0] } ?? [] : current
    }

    /// How long nothing is left: the longest reset among the quotas that are used up, less the response's Age.
    ///
    /// - Returns: more than zero; nil where every quota has something left or does not say when.
    public static func wait(_ fields: HeaderFields) -> Duration? {
        // Asked of every response, and most tell nothing: one look at the first bytes of the names is all they cost.
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

    /// What the quotas of a response are counted by, as a hash; nil where it does not say (`pk`), or says several things.
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

    /// The policy's name: a String, and a Token in drafts before it was one.
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
