// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

extension ResponseBody {
    /// The body, telling the call's observers once how it ended; itself where nobody listens.
    func announcingEnd(to context: CallContext) -> ResponseBody {
        guard context.isObserved, let source else { return self }
        return ResponseBody(ObservedBody(source, context), length: length)
    }
}

/// Emits `bodyEnded` exactly once: at the end, on an error, or when the body is dropped before.
private final class ObservedBody: ByteSource {
    private struct State {
        var bytes = 0
        var announced = false
    }

    private let upstream: any ByteSource
    private let context: CallContext
    private let state = Mutex(State())

    init(_ upstream: any ByteSource, _ context: CallContext) {
        self.upstream = upstream
        self.context = context
    }

    deinit {
        announce(CancellationError())
    }

    func next() async throws -> ByteChunk? {
        do {
            let chunk = try await upstream.next()
            if let chunk {
                state.withLock { $0.bytes += chunk.count }
            } else {
                announce(nil)
            }
            return chunk
        } catch {
            announce(error)
            throw error
        }
    }

    func cancel() {
        announce(CancellationError())
        upstream.cancel()
    }

    private func announce(_ error: (any Error)?) {
        let bytes: Int? = state.withLock { state in
            guard !state.announced else { return nil }
            state.announced = true
            return state.bytes
        }
        guard let bytes else { return }
        context.emit(.bodyEnded) { event in
            event.attempt = context.attempt
            event.bytes = bytes
            if let error { event.describe(error) }
        }
    }
}
