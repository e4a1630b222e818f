// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a store could not do, why, and what helps.
///
/// A cache turns every one of these into a miss and an event; none reaches the caller of a request.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, fit for a metric label.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The store is closed.
        public static let closed = Code("closed")
        /// Another process holds the directory.
        public static let locked = Code("locked")
        /// The directory is not safe to use: foreign owner, writable by others, or not a directory.
        public static let unsafeDirectory = Code("unsafe-directory")
        /// A checksum or a structure did not hold; the entry is removed.
        public static let corrupt = Code("corrupt")
        /// The entry is encrypted with a key that is not at hand; the entry is whole, and stays.
        public static let sealed = Code("sealed")
        /// The store was opened for reading only.
        public static let readOnly = Code("read-only")
        /// The entry is larger than the store may hold.
        public static let tooLarge = Code("too-large")
        /// No space is left, neither within the bound nor on the device.
        public static let noSpace = Code("no-space")
        /// The key was invalidated while the entry was written.
        public static let superseded = Code("superseded")
        /// The writer gave the entry up before it was whole.
        public static let abandoned = Code("abandoned")
        /// The waiting task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The file system said no; the cause holds its number.
        public static let io = Code("io")
        /// The store rests after repeated failures and will try again later.
        public static let resting = Code("resting")
        /// A value of the configuration makes no sense.
        public static let badConfiguration = Code("bad-configuration")
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do next, for people.
    public let message: String
    /// The underlying error, if there is one.
    public let cause: (any Error)?
    /// With ``Code/tooLarge``: the bytes that one entry may take, where the store says so.
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
    /// An entry that takes more than `limit` bytes, its keys and description included.
    public static func tooLarge(limit: Int) -> StoreError {
        var error = StoreError(
            .tooLarge,
            "The response takes more than the \(limit) bytes that one may take; raise the cache's entryLimit to store it."
        )
        error.limit = limit
        return error
    }
}

/// What several parts of the stores throw.
extension StoreError {
    static let closed = StoreError(.closed, "The store is closed; open a new one.")
    static let displaced = StoreError(
        .resting,
        "The directory was removed while the store had it open; treat this as a miss, and open the store again."
    )
    static let noSpace = StoreError(
        .noSpace,
        "What is pinned, written or read leaves no room; try again later or raise the capacity."
    )
    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
    static let superseded = StoreError(
        .superseded,
        "The key was invalidated while this entry was written; fetch it again."
    )
    static let gone = StoreError(.superseded, "This version of the entry is gone; treat it as a miss.")
    static let damaged = StoreError(.corrupt, "The entry on the disk is damaged and was removed; fetch it again.")
    static let abandoned = StoreError(
        .abandoned,
        "The writer gave up before the body was whole; send the request again."
    )
}
