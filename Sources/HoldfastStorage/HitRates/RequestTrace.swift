// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A sequence of requests, each of a key and a size, to measure hit rates with.
///
/// Keys are numbered by first appearance. In a file each request takes 12 bytes, little-endian: the key in 8, the size in 4.
public struct RequestTrace: Sendable {
    /// One request.
    public struct Request: Sendable, Hashable {
        /// The number of the key: 0 for the first that appeared, and so on.
        public let key: UInt32
        /// Bytes.
        public let size: UInt32
    }

    /// The requests in their order.
    public private(set) var requests: [Request] = []
    /// How many keys there are.
    public private(set) var keyCount = 0
    /// Bytes of all requests.
    public private(set) var totalBytes = 0
    /// Bytes of all keys, each with the size of its first request.
    public private(set) var uniqueBytes = 0
    private var numbers: [UInt64: UInt32] = [:]

    /// No requests.
    public init() {}

    /// Adds a request at the end.
    public mutating func append(key: UInt64, size: UInt32) {
        let number: UInt32
        if let known = numbers[key] {
            number = known
        } else {
            number = UInt32(truncatingIfNeeded: keyCount)
            numbers[key] = number
            keyCount += 1
            uniqueBytes += Int(size)
        }
        totalBytes += Int(size)
        requests.append(Request(key: number, size: size))
    }

    /// The requests of a file's bytes; an incomplete one at the end is left out.
    public init(decoding bytes: [UInt8]) {
        requests.reserveCapacity(bytes.count / 12)
        bytes.withUnsafeBytes { raw in
            for offset in stride(from: 0, to: raw.count / 12 * 12, by: 12) {
                append(
                    key: UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
                    size: UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self))
                )
            }
        }
    }
}
