// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// A response body that breaks off after a number of bytes, as a lost connection does.
final class TruncatedBody: ByteSource {
    private struct State {
        var memory: ByteChunk?
        var rest: Int
    }

    private let source: (any ByteSource)?
    private let state: Mutex<State>

    init(_ body: ResponseBody, bytes: Int) {
        source = body.source
        state = Mutex(State(memory: body.bytesInMemory, rest: bytes))
    }

    func next() async throws -> ByteChunk? {
        guard state.withLock({ $0.rest }) > 0 else { throw broken() }
        let chunk: ByteChunk?
        if let source {
            chunk = try await source.next()
        } else {
            chunk = state.withLock { state in
                defer { state.memory = nil }
                return state.memory
            }
        }
        guard let chunk, !chunk.isEmpty else { throw broken() }
        let taken = state.withLock { state in
            let taken = min(state.rest, chunk.count)
            state.rest -= taken
            return taken
        }
        return taken == chunk.count ? chunk : ByteChunk(Array(chunk.array.prefix(taken)))
    }

    func cancel() {
        source?.cancel()
        state.withLock { $0.memory = nil }
    }

    private func broken() -> ServiceError {
        cancel()
        return ServiceError(
            .connectionLost,
            "Injected: the connection broke in the middle of the response's body.",
            progress: .bytesReceived
        )
    }
}
