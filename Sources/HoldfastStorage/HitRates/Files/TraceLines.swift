// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Takes the lines of a text trace apart, from bytes that come piece by piece.
struct TraceLines: Sendable {
    private static let longestLine = 1 << 16

    private let path: String
    private var rest: [UInt8] = []
    private var line = 0
    private var mayBeHeader = true

    /// Nothing read yet; `path` is for error messages.
    init(path: String) {
        self.path = path
    }

    /// Takes the next bytes and adds the requests of the lines that are whole, and at the end the last line.
    mutating func append(
        _ bytes: [UInt8],
        isLast: Bool,
        to trace: inout RequestTrace,
        limit: Int
    ) throws(TraceError) {
        rest += bytes
        var start = rest.startIndex
        while trace.requests.count < limit, let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
            try take(rest[start..<end], &trace)
            start = end + 1
        }
        rest.removeSubrange(..<start)
        if isLast, trace.requests.count < limit {
            try take(rest[...], &trace)
            rest = []
        } else if trace.requests.count < limit, rest.count > Self.longestLine {
            throw malformed("is longer than 64 KiB; is this a text file?", at: line + 1)
        }
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>, _ trace: inout RequestTrace) throws(TraceError) {
        line += 1
        if bytes.count > Self.longestLine { throw malformed("is longer than 64 KiB; is this a text file?", at: line) }
        let fields = Self.fields(of: bytes)
        guard let key = fields.first, key.first != UInt8(ascii: "#") else { return }
        guard fields.count >= 2, let size = Self.number(fields[1]) else {
            if mayBeHeader {
                mayBeHeader = false
                return
            }
            throw malformed("is not 'key size', the size in bytes, a whole number", at: line)
        }
        mayBeHeader = false
        let time = fields.count > 2 ? Self.milliseconds(fields[2]) : nil
        let life = fields.count > 3 ? Self.milliseconds(fields[3]) : nil
        if fields.count > 2 && time == nil || fields.count > 3 && life == nil {
            throw malformed("has a time or a life that is no number of seconds, such as 12.5", at: line)
        }
        let end = life.map { life in
            let (sum, overflow) = (time ?? 0).addingReportingOverflow(life)
            return StoreInstant(milliseconds: overflow ? .max : sum)
        }
        let isKept = trace.append(
            key: RequestTrace.hash(of: key),
            size: UInt32(clamping: size),
            at: time.map { StoreInstant(milliseconds: $0) },
            freshUntil: end
        )
        if !isKept { throw .tooManyKeys }
    }

    /// The words between tabs, else between spaces, else between commas.
    static func fields(of line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        let (space, comma, tab) = (UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: "\t"))
        let text = trimmed(line) { $0 == space || $0 == tab || $0 == UInt8(ascii: "\r") }
        if text.isEmpty { return [] }
        let separator = text.contains(tab) ? tab : text.contains(space) ? space : comma
        return text.split(separator: separator, omittingEmptySubsequences: separator != comma).map { field in
            trimmed(field) { $0 == space || $0 == comma || $0 == UInt8(ascii: "\"") }
        }
    }

    /// A whole number of decimal digits; one that does not fit is the largest there is.
    static func number(_ text: ArraySlice<UInt8>) -> Int64? {
        guard !text.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in text {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (tens, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, tooLargeYet) = tens.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            value = tooLarge || tooLargeYet ? .max : sum
        }
        return value
    }

    /// Seconds as milliseconds, further places cut off.
    static func milliseconds(_ text: ArraySlice<UInt8>) -> Int64? {
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, let seconds = number(whole) else { return nil }
        var fraction: Int64 = 0
        if parts.count > 1 {
            guard number(parts[1]) != nil else { return nil }
            for place in 0..<3 {
                let digit = place < parts[1].count ? parts[1][parts[1].startIndex + place] - UInt8(ascii: "0") : 0
                fraction = fraction * 10 + Int64(digit)
            }
        }
        let (product, tooLarge) = seconds.multipliedReportingOverflow(by: 1_000)
        let (sum, tooLargeYet) = product.addingReportingOverflow(fraction)
        return tooLarge || tooLargeYet ? .max : sum
    }

    private static func trimmed(_ text: ArraySlice<UInt8>, _ isCut: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        var text = text
        while let first = text.first, isCut(first) { text.removeFirst() }
        while let last = text.last, isCut(last) { text.removeLast() }
        return text
    }

    private func malformed(_ text: String, at line: Int) -> TraceError {
        TraceError(.malformed, "\(path), line \(line) \(text).")
    }
}
