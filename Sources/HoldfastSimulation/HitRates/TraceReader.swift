// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastStorage

/// Reads a `.trace` file piece by piece, however large it is.
///
/// The file is open as long as the reader exists. Calls block; a growing file is read as far as it goes.
package struct TraceReader: ~Copyable {
    /// A request as the file has it.
    package struct Record: Sendable, Hashable {
        /// The key, as numbered or hashed by anyone who wrote the file.
        package let key: UInt64
        /// Bytes.
        package let size: UInt32

        /// A request of this key and size.
        package init(key: UInt64, size: UInt32) {
            self.key = key
            self.size = size
        }
    }

    /// Bytes of a request in a file: 8 for the key, 4 for the size, little-endian.
    package static let recordSize = 12

    /// Requests in the file; nil for a pipe and the like, whose length is unknown.
    package let requestCount: Int?
    private let file: TraceFile
    private let path: String
    private var hasBegun = false

    /// Opens a file.
    ///
    /// - Parameter path: absolute, or relative to the process's directory; links are followed, pipes can be read.
    /// - Throws: ``TraceError`` if there is no such file, if it is empty, or if its size is not a multiple of 12.
    package init(path: String) throws(TraceError) {
        // Checked before it is stored: a noncopyable value is either initialized completely or not at all.
        let file = try TraceFile(reading: path)
        let size = file.size
        if size == 0 { throw Self.empty(path) }
        if let size, size % Self.recordSize != 0 { throw Self.torn(path, rest: size % Self.recordSize) }
        requestCount = size.map { $0 / Self.recordSize }
        self.file = file
        self.path = path
    }

    /// The next requests, at most `count` (at least 1); none at the end.
    package mutating func next(upTo count: Int = 1 << 16) throws(TraceError) -> [Record] {
        let bytes = try file.read(min(max(1, count), 1 << 24) * Self.recordSize)
        if bytes.isEmpty, !hasBegun { throw Self.empty(path) }
        hasBegun = true
        guard bytes.count % Self.recordSize == 0 else { throw Self.torn(path, rest: bytes.count % Self.recordSize) }
        return Self.records(in: bytes)
    }

    /// The requests in the bytes of a file, without an incomplete one at the end.
    static func records(in bytes: [UInt8]) -> [Record] {
        bytes.withUnsafeBytes { raw in
            (0..<raw.count / recordSize).map { index in
                let offset = index * recordSize
                return Record(
                    key: UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
                    size: UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self))
                )
            }
        }
    }

    private static func empty(_ path: String) -> TraceError {
        TraceError(.empty, message: "\(path) is empty; record some requests first.")
    }

    private static func torn(_ path: String, rest: Int) -> TraceError {
        TraceError(
            .malformed,
            message:
                "\(path) is not a .trace file, or was cut: its size is not a multiple of \(recordSize) bytes (\(rest) are left over). "
                + "Text is read from files named .txt, .csv, .tsv or .log."
        )
    }
}

/// Why a trace could not be read or written, and what to do about it.
public struct TraceError: LocalizedError, Sendable, CustomStringConvertible {
    /// The kind of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The file cannot be opened or read.
        public static let unreadable = Code("unreadable")
        /// The file contains no request.
        public static let empty = Code("empty")
        /// The bytes are not a trace.
        public static let malformed = Code("malformed")
        /// There are more keys than numbers for them.
        public static let tooManyKeys = Code("too-many-keys")
        /// The file cannot be written.
        public static let unwritable = Code("unwritable")
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do next, for people.
    public let message: String
    /// The underlying error, if there is one.
    public let cause: (any Error)?

    /// An error of this kind.
    public init(_ code: Code, message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var errorDescription: String? { message }
    public var description: String {
        "\(code): \(message)" + (cause.map { " (\($0))" } ?? "")
    }

    /// All numbers are in use.
    static let tooManyKeys = TraceError(
        .tooManyKeys,
        message: "The trace has more than 4,294,967,295 keys; replay a sample of them, chosen by a hash of the key."
    )
}

/// An open file of requests, read from its start to its end.
///
/// Unlike a store's files it may be a link or a pipe, because the user named it.
struct TraceFile {
    /// Bytes of the file; nil for a pipe and the like, whose length is unknown.
    let size: Int?
    private let handle: FileHandle
    private let path: String

    init(reading path: String) throws(TraceError) {
        let url = URL(filePath: path)
        do {
            handle = try FileHandle(forReadingFrom: url)
        } catch {
            throw TraceError(
                .unreadable,
                message: "\(path) cannot be opened; check the path and its permissions.",
                cause: error
            )
        }
        let found = try? FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)
        let isFile = found?[.type] as? FileAttributeType == .typeRegular
        size = isFile ? (found?[.size] as? NSNumber)?.intValue : nil
        self.path = path
    }

    /// The next `count` bytes, or fewer at the end of the file.
    func read(_ count: Int) throws(TraceError) -> [UInt8] {
        do {
            var bytes: [UInt8] = []
            // A pipe may have less to give each time.
            while bytes.count < count, let more = try handle.read(upToCount: count - bytes.count), !more.isEmpty {
                bytes += more
            }
            return bytes
        } catch {
            throw TraceError(
                .unreadable,
                message: "\(path) cannot be read; name a file, not a directory.",
                cause: error
            )
        }
    }
}

// The two file formats: 12 bytes for each request, and a line of text for each request.
extension RequestTrace {
    /// Reads a `.trace` file: each request takes 12 bytes, little-endian, 8 for the key and 4 for the size; no header.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: this many requests from the start; nil: all.
    /// - Throws: ``TraceError`` if there is no such file, or if it is empty or has another format.
    public init(contentsOf path: String, limit: Int? = nil) throws(TraceError) {
        try self.init(reading: try TraceReader(path: path), limit: limit)
    }

    /// Reads a text file: one request per line, `key size [time [life]]`.
    ///
    /// The fields are separated by tabs, otherwise by spaces, otherwise by commas: by the first of these that the line contains.
    /// The key is any word and is hashed; the size is in bytes (from 4 GiB it counts as 4 GiB minus one byte); time and life are in
    /// seconds, with or without a fraction, and the life begins at the time. Empty lines, lines that begin with `#`, and a first
    /// line whose size is not a number (a header) are skipped. A line may have up to 64 KiB.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: this many requests from the start; nil: all.
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
        if requests.isEmpty {
            throw lines.nothingRead
        }
    }

    /// The requests in the bytes of a `.trace` file, without an incomplete one at the end and those beyond the last key number.
    public init(decoding bytes: [UInt8]) {
        self.init()
        reserve(bytes.count / TraceReader.recordSize)
        for record in TraceReader.records(in: bytes) { append(key: record.key, size: record.size) }
    }

    /// The requests as the bytes of a `.trace` file, with numbered keys and without times and lives.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(requests.count * TraceReader.recordSize)
        for request in requests {
            withUnsafeBytes(of: UInt64(request.key).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: request.size.littleEndian) { bytes += $0 }
        }
        return bytes
    }

    /// Writes a `.trace` file: see ``encoded``. The file appears, or is replaced, once it is complete.
    ///
    /// Blocks, and needs 24 bytes of memory for each request.
    public func write(to path: String) throws(TraceError) {
        do {
            try Data(encoded).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw TraceError(
                .unwritable,
                message: "\(path) cannot be written; check the directory, its permissions and its space.",
                cause: error
            )
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
}

/// Parses the lines of a text trace, from bytes that arrive piece by piece.
struct TraceLines: Sendable {
    private static let longestLine = 1 << 16
    /// What some programs write before the first line of a text in UTF-8.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private let path: String
    private var rest: [UInt8] = []
    private var line = 0
    private var mayBeHeader = true
    /// The number of the line that was skipped as a header.
    private var header: Int?

    private static let notARequest = "is not 'key size', with the size in bytes as a whole number"

    /// Nothing read yet; `path` is for error messages.
    init(path: String) { self.path = path }

    /// The error of a text without requests; what was skipped as a header may be a request that is written wrong.
    var nothingRead: TraceError {
        let advice = header.map { "line \($0) \(Self.notARequest)" } ?? "write a line 'key size' for each"
        return TraceError(.empty, message: "\(path) has no request; \(advice).")
    }

    /// Parses the next bytes and adds the requests of the complete lines, and at the end of the last line.
    mutating func append(
        _ bytes: [UInt8],
        isLast: Bool,
        to trace: inout RequestTrace,
        limit: Int
    ) throws(TraceError) {
        rest += bytes
        var start = rest.startIndex
        while trace.requests.count < limit, let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
            try take(rest[start..<end], into: &trace)
            start = end + 1
        }
        rest.removeSubrange(..<start)
        if isLast, trace.requests.count < limit {
            try take(rest[...], into: &trace)
            rest = []
        } else if trace.requests.count < limit, rest.count > Self.longestLine {
            throw malformed("is longer than 64 KiB; is this a text file?", at: line + 1)
        }
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>, into trace: inout RequestTrace) throws(TraceError) {
        line += 1
        if bytes.count > Self.longestLine { throw malformed("is longer than 64 KiB; is this a text file?", at: line) }
        let isMarked = line == 1 && bytes.starts(with: Self.byteOrderMark)
        let fields = Self.fields(of: isMarked ? bytes.dropFirst(Self.byteOrderMark.count) : bytes)
        guard let key = fields.first, key.first != UInt8(ascii: "#") else { return }
        guard fields.count >= 2, let size = Self.number(fields[1]) else {
            if mayBeHeader {
                mayBeHeader = false
                header = line
                return
            }
            throw malformed(Self.notARequest, at: line)
        }
        mayBeHeader = false
        let time = fields.count > 2 ? Self.milliseconds(fields[2]) : nil
        let life = fields.count > 3 ? Self.milliseconds(fields[3]) : nil
        if fields.count > 2 && time == nil || fields.count > 3 && life == nil {
            throw malformed("has a time or a life that is not a number of seconds, such as 12.5", at: line)
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

    /// The words separated by tabs, otherwise by spaces, otherwise by commas.
    static func fields(of line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        let (space, comma, tab) = (UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: "\t"))
        let text = trimmed(line) { $0 == space || $0 == tab || $0 == UInt8(ascii: "\r") }
        if text.isEmpty { return [] }
        let separator = text.contains(tab) ? tab : text.contains(space) ? space : comma
        return text.split(separator: separator, omittingEmptySubsequences: separator != comma).map { field in
            trimmed(field) { $0 == space || $0 == comma || $0 == UInt8(ascii: "\"") }
        }
    }

    /// A decimal integer; one that does not fit becomes the largest number.
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

    /// Seconds as milliseconds; further decimals are cut off.
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

    private static func trimmed(_ text: ArraySlice<UInt8>, where isCut: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        var text = text
        while let first = text.first, isCut(first) { text.removeFirst() }
        while let last = text.last, isCut(last) { text.removeLast() }
        return text
    }

    private func malformed(_ text: String, at line: Int) -> TraceError {
        TraceError(.malformed, message: "\(path), line \(line) \(text).")
    }
}
