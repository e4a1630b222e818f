// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
package import Holdfast
package import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    private import FoundationNetworking
#endif

/// Bytes that follow from their position, so that a body of any length can be made and checked without storing it.
///
/// The period is a prime number of bytes, so a lost, duplicated or moved block is detected, whatever the sizes in which the body is
/// transferred.
package enum TransferPattern {
    /// The number of bytes after which the pattern repeats.
    package static let period = 65_521

    /// The pattern twice: a whole period follows every position without a break.
    private static let twice: [UInt8] = {
        var mixed: UInt32 = 0x9E37_79B9
        let once = (0..<period).map { _ in
            mixed ^= mixed << 13
            mixed ^= mixed >> 17
            mixed ^= mixed << 5
            return UInt8(truncatingIfNeeded: mixed >> 11)
        }
        return once + once
    }()

    /// `count` bytes of the pattern from `position`; at most ``period`` of them.
    package static func bytes(_ count: Int, at position: Int) -> ByteChunk {
        let start = position % period
        return whole[start..<(start + min(count, period))]
    }

    private static let whole = ByteChunk(twice)

    /// Reads a body from its first byte and says whether it is the pattern.
    package struct Checker: Sendable, Hashable {
        /// How many bytes were read.
        package private(set) var count = 0
        /// Whether each of them was right.
        package private(set) var isIntact = true

        /// A checker that has read nothing.
        package init() {}

        /// Reads the next bytes.
        package mutating func read(_ bytes: UnsafeRawBufferPointer) {
            var done = 0
            while done < bytes.count {
                let part = min(bytes.count - done, period)
                let start = (count + done) % period
                let isRight = twice.withUnsafeBytes { all in
                    let expected = UnsafeRawBufferPointer(rebasing: all[start..<(start + part)])
                    return expected.isEqual(to: UnsafeRawBufferPointer(rebasing: bytes[done..<(done + part)]))
                }
                if !isRight { isIntact = false }
                done += part
            }
            count += bytes.count
        }

        /// Reads the next chunk.
        package mutating func read(_ chunk: ByteChunk) { chunk.withUnsafeBytes { read($0) } }
    }
}

/// The ``TransferPattern`` as a request body, with a gauge of the bytes taken from it.
final class PatternSource: ByteSource {
    /// The error that it fails with, if it should fail.
    struct Failure: Error {}

    /// Counts the bytes that were returned.
    let gauge: ByteGauge
    private let count: Int
    private let fails: Bool
    private let position = Mutex(0)
    private let ending = Atomic(false)

    /// A source of `count` bytes, after which it ends or fails.
    init(_ count: Int, fails: Bool = false, gauge: ByteGauge = ByteGauge()) {
        self.count = count
        self.fails = fails
        self.gauge = gauge
    }

    func next() async throws -> ByteChunk? {
        if ending.load(ordering: .acquiring) { throw CancellationError() }
        try Task.checkCancellation()
        let chunk: ByteChunk? = position.withLock { position in
            guard position < count else { return nil }
            let chunk = TransferPattern.bytes(count - position, at: position)
            position += chunk.count
            return chunk
        }
        guard let chunk else {
            if fails { throw Failure() }
            return nil
        }
        gauge.add(chunk.count)
        return chunk
    }

    func cancel() { ending.store(true, ordering: .releasing) }
}

extension TransportRun {
    /// Passes `use` a stream and a file that are longer than what sockets hold, for exchanges that end while the body is being
    /// sent.
    func withUnfinishedBodies(_ use: (RequestBody) async throws -> Void) async throws {
        let count = TransportRun.socketBuffers * 2
        try await use(.factory(length: count) { PatternSource(count) })
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let handle = try FileHandle(forWritingTo: file)
        // A sparse file: long, but without content.
        try handle.truncate(atOffset: UInt64(count))
        try handle.close()
        try await use(.file(file))
    }
}

extension Transport {
    /// Sends without a pipeline.
    package func send(
        _ url: URL,
        method: String = "GET",
        fields: [String: String] = [:],
        body: RequestBody = .none,
        context: CallContext = CallContext()
    ) async throws -> Response {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return try await send(request, body: body, context: context)
    }
}

extension Response {
    /// The whole body as text.
    package func text() async throws -> String { String(decoding: try await body.collect(), as: UTF8.self) }
}
