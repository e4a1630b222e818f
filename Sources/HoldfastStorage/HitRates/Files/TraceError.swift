// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
