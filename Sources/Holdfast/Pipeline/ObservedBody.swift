// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

extension ResponseBody {
    /// The body, which tells the call's observers once how it ended; unchanged if nobody observes.
    func announcingEnd(to context: CallContext) -> ResponseBody {
        guard context.isObserved, let source else { return self }
        return ResponseBody(ObservedBody(source, context: context), length: length)
    }
}

/// Emits `bodyEnded` exactly once: at the end, on an error, or if the body is released earlier.
private final class ObservedBody: ByteSource {
    private struct State {
        var bytes = 0
        var announced = false
    }

    private let upstream: any ByteSource
    private let context: CallContext
    private let state = Mutex(State())

    init(_ upstream: any ByteSource, context: CallContext) {
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

extension CallContext {
    /// Detaches a response from its connection, because the call continues and may never read it: to wait, to send again, or to
    /// follow a redirect.
    ///
    /// Its body is read in the background, so that a short one can still be stored by a cache below, and its connection and its
    /// place among the exchanges become free. Of a long or slow one, only the part that has arrived is kept.
    func detach(_ response: inout Response) {
        guard let source = response.body.source, !(source is DetachedBody) else { return }
        let body = DetachedBody(source, clock: clock, background: background)
        response.body = ResponseBody(body, length: response.body.length)
    }
}

/// A body that is read ahead, up to 64 KiB and for at most a second, whether or not anybody asks for it.
private final class DetachedBody: ByteSource {
    private static let longest = 64 << 10
    private static let patience: Duration = .seconds(1)

    private struct State {
        var chunks: [ByteChunk] = []
        var count = 0
        var error: (any Error)?
        var next = 0
    }

    private final class Buffer: Sendable {
        let state = Mutex(State())
    }

    private let buffer = Buffer()
    private let task: Task<Void, Never>

    init(_ source: any ByteSource, clock: any HoldfastClock, background: BackgroundTasks) {
        task = background.spawn { [buffer] in
            await DetachedBody.read(source, into: buffer, clock: clock)
        }
    }

    private static func read(_ source: any ByteSource, into buffer: Buffer, clock: any HoldfastClock) async {
        let isWhole: Bool
        do {
            let end = clock.now.advanced(by: patience)
            isWhole = try await withDeadline(end, on: clock, discard: { _ in }) {
                while let chunk = try await source.next() {
                    let count = buffer.state.withLock { state in
                        state.chunks.append(chunk)
                        state.count += chunk.count
                        return state.count
                    }
                    if count > longest { return false }
                }
                return true
            }
        } catch {
            let isSlow = (error as? ServiceError)?.code == .timeout
            buffer.state.withLock { $0.error = isSlow ? tooLong : error }
            return source.cancel()
        }
        guard !isWhole else { return }
        buffer.state.withLock { $0.error = tooLong }
        source.cancel()
    }

    private static var tooLong: ServiceError {
        ServiceError(
            .bodyTooLarge,
            "The rest of this content was dropped while the call waited for a retry; request it with a call of its own.",
            progress: .bytesReceived
        )
    }

    func next() async throws -> ByteChunk? {
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        return try buffer.state.withLock { state in
            if state.next < state.chunks.count {
                defer { state.next += 1 }
                return state.chunks[state.next]
            }
            if let error = state.error { throw error }
            return nil
        }
    }

    func cancel() { task.cancel() }
}
