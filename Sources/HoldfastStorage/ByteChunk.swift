// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// An immutable run of bytes that can be sliced without copying; Holdfast uses it for all body bytes.
///
/// A chunk shares its storage with its slices, so slicing costs O(1), but a slice keeps the whole storage alive. Call
/// ``compacted()`` before you keep a small slice of a large chunk for long. Indices are offsets from 0.
public struct ByteChunk: Sendable, RandomAccessCollection {
    /// The bytes that this chunk is a part of.
    @usableFromInline package let storage: [UInt8]
    /// Its place there.
    @usableFromInline package let bounds: Range<Int>

    /// An empty chunk.
    public init() { self.init([]) }

    /// A chunk that takes over `bytes` without copying them.
    public init(_ bytes: [UInt8]) {
        storage = bytes
        bounds = 0..<bytes.count
    }

    /// A chunk that copies the bytes of `sequence`, such as a UTF-8 view or a slice.
    public init(copying sequence: some Sequence<UInt8>) { self.init(Array(sequence)) }

    private init(storage: [UInt8], bounds: Range<Int>) {
        self.storage = storage
        self.bounds = bounds
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { bounds.count }

    public subscript(position: Int) -> UInt8 {
        precondition(position >= 0 && position < bounds.count, "ByteChunk index \(position) is out of range")
        return storage[bounds.lowerBound + position]
    }

    /// The bytes in `range` (offsets from 0), sharing this chunk's storage.
    public subscript(range: Range<Int>) -> ByteChunk {
        precondition(
            range.lowerBound >= 0 && range.upperBound <= bounds.count,
            "ByteChunk range \(range) is out of range"
        )
        let lower = bounds.lowerBound + range.lowerBound
        return ByteChunk(storage: storage, bounds: lower..<(lower + range.count))
    }

    /// The bytes as an array; not copied if the chunk covers its whole storage.
    public var array: [UInt8] {
        bounds.count == storage.count ? storage : Array(storage[bounds])
    }

    /// The same bytes in storage of their own, so that the larger chunk they were sliced from can be freed.
    public func compacted() -> ByteChunk {
        bounds.count == storage.count ? self : ByteChunk(array)
    }

    /// Appends the bytes to `array` in one copy.
    public func append(to array: inout [UInt8]) {
        array.append(contentsOf: storage[bounds])
    }

    /// Calls `body` with the bytes; the pointer must not outlive the call.
    @inlinable
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var outcome: Swift.Result<Result, Failure>?
        storage.withUnsafeBytes { all in
            let part = UnsafeRawBufferPointer(rebasing: all[bounds])
            do throws(Failure) {
                outcome = .success(try body(part))
            } catch {
                outcome = .failure(error)
            }
        }
        guard let outcome else { preconditionFailure("Array.withUnsafeBytes did not call its closure") }
        return try outcome.get()
    }

    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try storage.withUnsafeBufferPointer { try body(UnsafeBufferPointer(rebasing: $0[bounds])) }
    }
}

extension ByteChunk: Hashable {
    public static func == (left: ByteChunk, right: ByteChunk) -> Bool {
        left.withUnsafeBytes { left in right.withUnsafeBytes { left.isEqual(to: $0) } }
    }

    public func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are the same; compared as memory, not one by one.
    @inline(__always)
    package func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let baseAddress, let otherAddress = other.baseAddress else { return true }
        return baseAddress == otherAddress || memcmp(baseAddress, otherAddress, count) == 0
    }
}
