// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

extension ResponseBody {
    /// The body, which tells the call's observers once how it ended; unchanged if nobody observes.
    func announcingEnd(to context: CallContext) -> ResponseBody {
        guard context.isObserved, let source else { return self }
        let watched = WatchedBody(
            source,
            ended: { bytes, end in
                context.emit(.bodyEnded) { event in
                    event.attempt = context.attempt
                    event.bytes = bytes
                    if !end.isWhole { event.describe(end.error ?? CancellationError()) }
                }
            }
        )
        return ResponseBody(watched, length: length)
    }
}

/// A body that tells what is read of it and, once, how it ended: at its end, on an error, when it is cancelled, or when it is
/// released.
package final class WatchedBody: ByteSource {
    /// How a body ended.
    package enum End: Sendable {
        /// It was read to its end.
        case whole
        /// A read failed.
        case failed(any Error)
        /// It was cancelled or released before its end.
        case left

        package var isWhole: Bool { if case .whole = self { true } else { false } }

        package var error: (any Error)? { if case .failed(let error) = self { error } else { nil } }
    }

    private struct State {
        var bytes = 0
        var isOver = false
    }

    private let upstream: any ByteSource
    private let received: @Sendable (_ positions: Range<Int>) -> Void
    private let ended: @Sendable (_ bytes: Int, _ end: End) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - received: is called for each chunk, with its positions in the body.
    ///   - ended: is called once, with the number of bytes that were read.
    package init(
        _ upstream: any ByteSource,
        received: @escaping @Sendable (_ positions: Range<Int>) -> Void = { _ in },
        ended: @escaping @Sendable (_ bytes: Int, _ end: End) -> Void = { _, _ in }
    ) {
        self.upstream = upstream
        self.received = received
        self.ended = ended
    }

    deinit { end(.left) }

    package func next() async throws -> ByteChunk? {
        do {
            guard let chunk = try await upstream.next() else {
                end(.whole)
                return nil
            }
            let start = state.withLock { state in
                defer { state.bytes += chunk.count }
                return state.bytes
            }
            received(start..<start + chunk.count)
            return chunk
        } catch {
            end(.failed(error))
            throw error
        }
    }

    package func cancel() {
        upstream.cancel()
        end(.left)
    }

    private func end(_ end: End) {
        let bytes: Int? = state.withLock { state in
            defer { state.isOver = true }
            return state.isOver ? nil : state.bytes
        }
        if let bytes { ended(bytes, end) }
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
