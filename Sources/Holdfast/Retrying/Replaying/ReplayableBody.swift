// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// A one-shot body whose first bytes are kept, so that another attempt can send them again and go on with the source.
///
/// Holds up to its limit and one chunk. Once more than that has been read the kept bytes are let go of and the content
/// belongs to the attempt that reads it: it is still sent, once. The source is read by a task of this object's own, for
/// an attempt that is given up must neither take a chunk with it nor end the source by its cancellation.
final class ReplayableBody: Sendable {
    private let source: any ByteSource
    private let state: Mutex<ReplayState>

    /// A body that reads `source` and keeps up to `limit` bytes.
    init(_ source: any ByteSource, limit: Int) {
        self.source = source
        state = Mutex(ReplayState(limit: max(limit, 0)))
    }

    deinit {
        if !state.withLock({ $0.hasEnded }) { source.cancel() }
    }

    /// Whether the content can be sent from its start.
    var isWhole: Bool { state.withLock { $0.isWhole } }

    /// How many bytes are kept.
    var keptBytes: Int { state.withLock { $0.keptBytes } }

    /// The content from its start, for one attempt.
    func makeReader() -> any ByteSource {
        ReplayReader(self, number: state.withLock { $0.open() })
    }

    /// Lets go of what is kept for further attempts, since none will follow.
    func release() {
        perform(state.withLock { $0.release() })
    }

    fileprivate func next(for reader: Int) async throws -> ByteChunk? {
        try Task.checkCancellation()
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    perform(state.withLock { $0.read(reader, continuation) })
                    // The handler may have run before the reader waited.
                    if Task.isCancelled { perform(state.withLock { $0.interrupt(reader) }) }
                }
            } onCancel: {
                perform(state.withLock { $0.interrupt(reader) })
            }
        } catch is ReplayState.Committed {
            throw ServiceError(
                .other,
                "The request's content is longer than what is kept of it and was sent by another attempt; raise "
                    + "`RetryRules.replayLimit`, or give the body as a factory.",
                progress: .bodySent
            )
        }
    }

    fileprivate func close(_ reader: Int) {
        perform(state.withLock { $0.close(reader) })
    }

    private func perform(_ actions: [ReplayState.Action]) {
        for action in actions {
            switch action {
            case .resume(let continuation, let result): continuation.resume(with: result)
            case .cancelSource: source.cancel()
            case .pull:
                let source = source
                Task { [weak self] in
                    let result: Result<ByteChunk?, any Error>
                    do {
                        result = .success(try await source.next())
                    } catch {
                        result = .failure(error)
                    }
                    self?.received(result)
                }
            }
        }
    }

    private func received(_ result: Result<ByteChunk?, any Error>) {
        perform(state.withLock { $0.received(result) })
    }
}

/// The content as one attempt reads it.
private final class ReplayReader: ByteSource {
    private let body: ReplayableBody
    private let number: Int

    init(_ body: ReplayableBody, number: Int) {
        self.body = body
        self.number = number
    }

    deinit { body.close(number) }

    func next() async throws -> ByteChunk? {
        try await body.next(for: number)
    }

    func cancel() {
        body.close(number)
    }
}
