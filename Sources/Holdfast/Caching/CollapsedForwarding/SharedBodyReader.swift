// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// One reader's end of a ``SharedBody``; dropping it is leaving.
final class SharedBodyReader: ByteSource {
    private let body: SharedBody
    private let id: Int
    private let delivered: @Sendable (Int) -> Void
    private let hasLeft = Mutex(false)

    init(_ body: SharedBody, id: Int, delivered: @escaping @Sendable (Int) -> Void) {
        self.body = body
        self.id = id
        self.delivered = delivered
    }

    deinit {
        cancel()
    }

    func next() async throws -> ByteChunk? {
        if hasLeft.withLock({ $0 }) { throw CancellationError() }
        try Task.checkCancellation()
        do {
            guard let chunk = try await body.next(id) else { return nil }
            delivered(chunk.count)
            return chunk
        } catch {
            // One who has left finds no place of its own any more.
            throw hasLeft.withLock { $0 } ? CancellationError() : error
        }
    }

    func cancel() {
        let leaves = hasLeft.withLock { hasLeft in
            defer { hasLeft = true }
            return !hasLeft
        }
        if leaves { body.leave(id) }
    }
}
