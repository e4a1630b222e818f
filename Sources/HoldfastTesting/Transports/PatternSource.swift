// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastStorage
internal import Synchronization

/// The ``TransferPattern`` as a request body, with a gauge of what was taken from it.
final class PatternSource: ByteSource {
    /// What it fails with, if it was told to.
    struct Failure: Error {}

    /// How many bytes were handed out.
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

    func cancel() {
        ending.store(true, ordering: .releasing)
    }
}

extension TransportRun {
    /// Hands `use` request bodies that are longer than what sockets hold, for exchanges that end while they are on their way:
    /// a stream and a file.
    func withUnfinishedBodies(_ use: (RequestBody) async throws -> Void) async throws {
        let count = TransportRun.socketBuffers * 2
        try await use(.factory(length: count) { PatternSource(count) })
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let handle = try FileHandle(forWritingTo: file)
        // A file with holes: long, and of no weight.
        try handle.truncate(atOffset: UInt64(count))
        try handle.close()
        try await use(.file(file))
    }
}
