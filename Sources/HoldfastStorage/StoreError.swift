// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a store could not do, why, and what to do about it.
///
/// A cache treats each of these as a miss and reports an event; none of them reaches the caller of a request.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, suitable as a metric label.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The store is closed.
        public static let closed = Code("closed")
        /// Another process has the directory open.
        public static let locked = Code("locked")
        /// The directory is not safe to use: another user owns it, others can write to it, or it is not a directory.
        public static let unsafeDirectory = Code("unsafe-directory")
        /// A checksum or structure check failed; the entry is removed.
        public static let corrupt = Code("corrupt")
        /// The entry is encrypted with a key that is not available; it is intact, and stays.
        public static let sealed = Code("sealed")
        /// The store was opened for reading only.
        public static let readOnly = Code("read-only")
        /// The entry is larger than the store may hold.
        public static let tooLarge = Code("too-large")
        /// There is no space left, within the capacity or on the device.
        public static let noSpace = Code("no-space")
        /// The key was invalidated while the entry was being written.
        public static let superseded = Code("superseded")
        /// The writer abandoned the entry before it was complete.
        public static let abandoned = Code("abandoned")
        /// The waiting task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The file system reported an error; the cause has its number.
        public static let io = Code("io")
        /// The store is paused after repeated failures and will try again later.
        public static let temporarilyUnavailable = Code("temporarily-unavailable")
        /// A configuration value is invalid.
        public static let badConfiguration = Code("bad-configuration")
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do next, for people.
    public let message: String
    /// The underlying error, if there is one.
    public let cause: (any Error)?
    /// For ``Code/tooLarge``: the most bytes that one entry may take, if the store knows.
    public var limit: Int?

    /// An error of this kind.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String {
        "\(code): \(message)" + (cause.map { " (\($0))" } ?? "")
    }
}

extension StoreError {
    /// An entry that takes more than `limit` bytes, including its keys and description.
    public static func tooLarge(limit: Int) -> StoreError {
        var error = StoreError(
            .tooLarge,
            "The response is larger than the limit of \(limit) bytes for one entry; raise the cache's entryLimit to store it."
        )
        error.limit = limit
        return error
    }
}

/// Errors that several parts of the stores throw.
extension StoreError {
    static let closed = StoreError(.closed, "The store is closed; open a new one.")
    static let displaced = StoreError(
        .temporarilyUnavailable,
        "The directory was removed while the store had it open; treat this as a miss, and open the store again."
    )
    static let noSpace = StoreError(
        .noSpace,
        "Pinned entries and bodies being written or read leave no room; try again later, or raise the capacity."
    )
    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
    static let superseded = StoreError(
        .superseded,
        "The key was invalidated while this entry was being written; fetch it again."
    )
    static let gone = StoreError(.superseded, "This version of the entry is gone; treat it as a miss.")
    static let damaged = StoreError(.corrupt, "The entry on the disk is damaged and was removed; fetch it again.")
    static let abandoned = StoreError(
        .abandoned,
        "The writer gave up before the body was complete; send the request again."
    )

    /// The error of a removal that is in force, but not on the disk yet.
    var unrecorded: StoreError {
        let message = """
            What was removed is gone, but that is recorded only once there is room, or when the store is closed; if the \
            process dies before that, it may be back. \(message)
            """
        return StoreError(code, message, cause: cause)
    }
}
