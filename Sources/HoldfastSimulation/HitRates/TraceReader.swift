// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads a `.trace` file piece by piece, however large it is.
///
/// The file is open as long as the reader lives. Calls block; a file that grows meanwhile is read as far as it goes.
public struct TraceReader: ~Copyable {
    /// A request as the file has it.
    public struct Record: Sendable, Hashable {
        /// The key, numbered or hashed by whoever wrote the file.
        public let key: UInt64
        /// Bytes.
        public let size: UInt32

        /// A request of this key and size.
        public init(key: UInt64, size: UInt32) {
            self.key = key
            self.size = size
        }
    }

    /// Bytes of a request in a file: the key in 8, the size in 4, little-endian.
    public static let recordSize = 12

    /// Requests in the file; nil for a pipe and the like, which do not know.
    public let requestCount: Int?
    private let file: TraceFile
    private let path: String
    private var hasBegun = false

    /// Opens a file.
    ///
    /// - Parameter path: absolute, or relative to the process's directory; links are followed, pipes can be read.
    /// - Throws: ``TraceError`` when there is no such file, when it is empty, or when its size is no multiple of 12.
    public init(path: String) throws(TraceError) {
        // Checked before it is kept: a value that cannot be copied is made whole or not at all.
        let file = try TraceFile(reading: path)
        let size = file.size
        if size == 0 { throw Self.empty(path) }
        if let size, size % Self.recordSize != 0 { throw Self.torn(path, size % Self.recordSize) }
        requestCount = size.map { $0 / Self.recordSize }
        self.file = file
        self.path = path
    }

    /// The next requests, at most `count` (at least 1) of them; none at the end.
    public mutating func next(upTo count: Int = 1 << 16) throws(TraceError) -> [Record] {
        let bytes = try file.read(min(max(1, count), 1 << 24) * Self.recordSize)
        if bytes.isEmpty, !hasBegun { throw Self.empty(path) }
        hasBegun = true
        guard bytes.count % Self.recordSize == 0 else { throw Self.torn(path, bytes.count % Self.recordSize) }
        return Self.records(in: bytes)
    }

    /// The requests in the bytes of a file; an incomplete one at the end is left out.
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
        TraceError(.empty, "\(path) is empty; record some requests first.")
    }

    private static func torn(_ path: String, _ rest: Int) -> TraceError {
        TraceError(
            .malformed,
            "\(path) is no .trace file, or was cut: its size is no multiple of \(recordSize) bytes (\(rest) are left over). "
                + "Text is read from files named .txt, .csv, .tsv or .log."
        )
    }
}

/// Why a trace could not be read or written, and what helps.
public struct TraceError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The file cannot be opened or read.
        public static let unreadable = Code("unreadable")
        /// There is no request in the file.
        public static let empty = Code("empty")
        /// The bytes are no trace.
        public static let malformed = Code("malformed")
        /// There are more keys than numbers for them.
        public static let tooManyKeys = Code("too-many-keys")
        /// The file cannot be written.
        public static let unwritable = Code("unwritable")
    }

    /// A call that the system refused.
    public struct SystemFailure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The call's name.
        public let call: String
        /// The system's number for what went wrong.
        public let errno: Int32

        public var description: String { "\(call): errno \(errno)" }
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do next, for people.
    public let message: String
    /// The underlying error, if there is one.
    public let cause: (any Error)?

    /// An error of this kind.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String {
        "\(code): \(message)" + (cause.map { " (\($0))" } ?? "")
    }

    /// All numbers are given.
    static let tooManyKeys = TraceError(
        .tooManyKeys,
        "The trace has more than 4,294,967,295 keys; replay a sample of them, chosen by a hash of the key."
    )
}
