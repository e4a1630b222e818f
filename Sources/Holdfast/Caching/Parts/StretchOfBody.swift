// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// A stretch of a joined body, which is read to its end all the same, since the store wants the rest.
///
/// The caller's bytes go before the store's: what fails before or behind the stretch fails the storing alone.
final class StretchOfBody: ByteSource {
    private struct State {
        var skip: Int
        var left: Int
        /// Whether the caller's part comes past the store by now.
        var isDirect = false
    }

    private let upstream: any ByteSource
    private let part: ExactBody?
    private let mayEndEarly: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - skip: how many bytes to leave out first.
    ///   - count: how many to hand out then.
    ///   - part: where these are the very bytes of a new part: its content, which stands within `upstream`.
    ///   - mayEndEarly: whether a part that is shorter than it says is handed out as it came, being the answer to the
    ///     caller's own request.
    init(_ upstream: any ByteSource, skip: Int, count: Int, part: ExactBody?, mayEndEarly: Bool = false) {
        self.upstream = upstream
        self.part = part
        self.mayEndEarly = mayEndEarly
        state = Mutex(State(skip: skip, left: count))
    }

    func next() async throws -> ByteChunk? {
        while true {
            do {
                guard let chunk = try await source.next() else { return nil }
                let wanted: Range<Int> = state.withLock { state in
                    let start = min(state.skip, chunk.count)
                    let count = min(chunk.count - start, state.left)
                    state.skip -= start
                    state.left -= count
                    return start..<start + count
                }
                if !wanted.isEmpty { return chunk[wanted] }
            } catch {
                guard try isSurvived(error) else { return nil }
            }
        }
    }

    private var source: any ByteSource {
        guard let part, state.withLock({ $0.isDirect }) else { return upstream }
        return part
    }

    /// Whether the caller's bytes go on; false where it has them all, or as many as the server had.
    private func isSurvived(_ error: any Error) throws -> Bool {
        if error.isCancellation { throw error }
        let goesOn: Bool? = state.withLock { state in
            if state.left == 0 || mayEndEarly && part?.isInconsistent == true { return false }
            guard part != nil, state.skip > 0, !state.isDirect else { return nil }
            // Stored bytes before the part could not be read, so nothing of the part was either.
            (state.skip, state.isDirect) = (0, true)
            return true
        }
        guard let goesOn else { throw error }
        return goesOn
    }

    func cancel() {
        upstream.cancel()
    }
}
