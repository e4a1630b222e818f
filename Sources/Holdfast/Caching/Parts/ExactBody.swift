// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// A part's content, which must be as long as its Content-Range says: other bytes come after it, and one too many or too few
/// would move them from their place.
final class ExactBody: ByteSource {
    private struct State {
        var left: Int
        var isInconsistent = false
    }

    private let upstream: any ByteSource
    private let state: Mutex<State>

    init(_ upstream: any ByteSource, count: Int) {
        self.upstream = upstream
        state = Mutex(State(left: count))
    }

    /// Whether the content proved shorter or longer than announced, although it was framed whole.
    var isInconsistent: Bool { state.withLock { $0.isInconsistent } }

    func next() async throws -> ByteChunk? {
        if isInconsistent { throw ExactBody.miscounted }
        let chunk = try await upstream.next()
        let wanted: Int = state.withLock { state in
            let wanted = min(chunk?.count ?? 0, state.left)
            state.left -= wanted
            state.isInconsistent = chunk.map { $0.count > wanted } ?? (state.left > 0)
            return wanted
        }
        if isInconsistent { upstream.cancel() }
        if let chunk, wanted > 0 { return wanted == chunk.count ? chunk : chunk[0..<wanted] }
        if isInconsistent { throw ExactBody.miscounted }
        return nil
    }

    func cancel() {
        upstream.cancel()
    }

    private static var miscounted: ServiceError {
        ServiceError(
            .protocolError,
            "The server sent a part that is not as long as its Content-Range; send the call again with `.reload`.",
            progress: .bytesReceived
        )
    }
}
