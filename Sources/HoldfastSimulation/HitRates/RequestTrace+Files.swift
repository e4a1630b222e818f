// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

// The two forms of a file: 12 bytes a request, and a line of text a request.
extension RequestTrace {
    /// Reads a `.trace` file: each request takes 12 bytes, little-endian, the key in 8 and the size in 4; no header.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: so many requests from the start; nil: all.
    /// - Throws: ``TraceError`` when there is no such file, and when it is empty or no such form.
    public init(contentsOf path: String, limit: Int? = nil) throws(TraceError) {
        try self.init(reading: try TraceReader(path: path), limit: limit)
    }

    /// Reads a text file: one request a line, `key size [time [life]]`.
    ///
    /// The fields are separated by tabs, else by spaces, else by commas: by the first of these that is in the line. The key is
    /// any word and is hashed; the size is in bytes (from 4 GiB on it counts as 4 GiB less one byte); time and life are in
    /// seconds with or without a fraction, the life from the time on. Empty lines, lines that begin with `#`, and a first line
    /// whose size is no number (a header) are passed over. A line may have 64 KiB.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: so many requests from the start; nil: all.
    /// - Throws: ``TraceError``, which names the line.
    public init(contentsOfText path: String, limit: Int? = nil) throws(TraceError) {
        self.init()
        let file = try TraceFile(reading: path)
        var lines = TraceLines(path: path)
        while requests.count < limit ?? .max {
            let bytes = try file.read(1 << 20)
            try lines.append(bytes, isLast: bytes.isEmpty, to: &self, limit: limit ?? .max)
            if bytes.isEmpty { break }
        }
        if requests.isEmpty { throw TraceError(.empty, "\(path) has no request; write a line 'key size' for each.") }
    }

    /// The requests of a `.trace` file's bytes; an incomplete one at the end is left out, and so are those beyond the last number.
    public init(decoding bytes: [UInt8]) {
        self.init()
        reserve(bytes.count / TraceReader.recordSize)
        for record in TraceReader.records(in: bytes) { append(key: record.key, size: record.size) }
    }

    /// The requests as the bytes of a `.trace` file, keys by their numbers; times and lives are left out.
    public var encoded: [UInt8] {
        encoded(requests[...])
    }

    /// Writes a `.trace` file: see ``encoded``. The file appears, or is replaced, once it is whole.
    ///
    /// Blocks; takes about a second for fifty million requests.
    public func write(to path: String) throws(TraceError) {
        let draft = path + ".part"
        do {
            try writeAll(to: draft)
            try TraceFile.move(draft, to: path)
        } catch {
            TraceFile.remove(draft)
            throw error
        }
    }

    private func writeAll(to path: String) throws(TraceError) {
        let file = try TraceFile(writing: path)
        for start in stride(from: 0, to: requests.count, by: 1 << 16) {
            try file.write(encoded(requests[start..<min(start + 1 << 16, requests.count)]))
        }
    }

    init(reading reader: consuming TraceReader, limit: Int? = nil, maximumKeys: Int = .max) throws(TraceError) {
        self.init(maximumKeys: min(maximumKeys, Int(UInt32.max)))
        reserve(min(reader.requestCount ?? 0, limit ?? .max))
        while requests.count < limit ?? .max {
            let records = try reader.next(upTo: min(1 << 16, (limit ?? .max) - requests.count))
            if records.isEmpty { return }
            for record in records where !append(key: record.key, size: record.size) { throw .tooManyKeys }
        }
    }

    private func encoded(_ requests: ArraySlice<Request>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(requests.count * TraceReader.recordSize)
        for request in requests {
            withUnsafeBytes(of: UInt64(request.key).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: request.size.littleEndian) { bytes += $0 }
        }
        return bytes
    }
}

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
