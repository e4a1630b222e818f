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
