// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// Pulls a stored body through in chunks.
final class StoredBodySource: ByteSource {
    private struct State {
        var offset = 0
        var isCancelled = false
    }

    private static let chunkSize = 64 << 10

    private let body: any StoredBody
    private let delivered: @Sendable (Int) -> Void
    private let failed: @Sendable (StoreError) async -> Void
    private let state = Mutex(State())

    init(
        _ body: any StoredBody,
        delivered: @escaping @Sendable (Int) -> Void,
        failed: @escaping @Sendable (StoreError) async -> Void
    ) {
        self.body = body
        self.delivered = delivered
        self.failed = failed
    }

    func next() async throws -> ByteChunk? {
        let offset: Int? = state.withLock { $0.isCancelled ? nil : $0.offset }
        guard let offset else { throw CancellationError() }
        do {
            let chunk = try await body.read(from: offset, upTo: StoredBodySource.chunkSize)
            guard !chunk.isEmpty else { return nil }
            state.withLock { $0.offset += chunk.count }
            delivered(chunk.count)
            return chunk
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            await failed(error)
            throw ServiceError(
                .other,
                "The stored body could not be read to its end; send the call again, it will come from the network.",
                cause: error,
                progress: .bytesReceived
            )
        }
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
    }
}
