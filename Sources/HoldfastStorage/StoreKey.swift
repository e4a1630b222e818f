// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A key of a store: length-framed bytes whose meaning only the caller knows.
///
/// Two parts identify an entry: the *primary* key (for a cache: method group, target URI and partition) and the *variant* key under
/// it (for a cache: the nominated request fields; empty if there are none). A store compares all bytes on a hit; its own hash only
/// finds the place.
public struct StoreKey: Hashable, Sendable {
    /// The bytes; the caller frames the parts so that different parts never give the same bytes.
    public let bytes: [UInt8]

    /// A key of these bytes.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public static func == (left: StoreKey, right: StoreKey) -> Bool {
        left.bytes.withUnsafeBytes { left in right.bytes.withUnsafeBytes { left.isEqual(to: $0) } }
    }

    /// Passes the bytes to the hasher in one call; an array would pass them one by one.
    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// Whether this key begins with the bytes of `prefix`.
    public func hasPrefix(_ prefix: [UInt8]) -> Bool {
        bytes.starts(with: prefix)
    }
}

/// A point in time as a store sees it: milliseconds since 1970-01-01T00:00:00Z, given by the caller.
public struct StoreInstant: Hashable, Comparable, Sendable {
    /// Milliseconds since the epoch, UTC; negative before it.
    public var milliseconds: Int64

    /// The instant `milliseconds` after the epoch.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Later than every other instant.
    public static let distantFuture = StoreInstant(milliseconds: .max)

    public static func < (left: StoreInstant, right: StoreInstant) -> Bool {
        left.milliseconds < right.milliseconds
    }
}
