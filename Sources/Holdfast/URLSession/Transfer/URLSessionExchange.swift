// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One request on its way through a URLSession: events come in from the delegate, the head and the body go out to tasks.
///
/// The delegate's queue calls the `received…` methods one at a time; everything else may be called from anywhere.
final class URLSessionExchange: Sendable {
    private let state: Mutex<ExchangeState>
    private let url: URL?
    private let diskLimit: Int
    private let now: @Sendable () -> MonotonicInstant
    private let onInterim: @Sendable (ResponseHead) -> Void

    /// An exchange that has not begun; `upload` is kept until it ends.
    init(
        _ upload: RequestUpload,
        limits: URLSessionTransport.Limits,
        now: @escaping @Sendable () -> MonotonicInstant,
        onInterim: @escaping @Sendable (ResponseHead) -> Void
    ) {
        url = upload.request.url
        diskLimit = limits.bodyOnDisk
        self.now = now
        self.onInterim = onInterim
        state = Mutex(
            ExchangeState(
                upload: upload,
                buffer: BodyBuffer(memoryLimit: limits.bodyInMemory, diskLimit: limits.bodyOnDisk),
                start: now()
            )
        )
    }

    // MARK: For the caller's task

    /// Starts `task` and waits for the final response head.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly when the calling task is cancelled.
    func head(of task: URLSessionTask) async throws -> HTTPURLResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if let outcome = state.withLock({ $0.begin(task, continuation) }) {
                    task.cancel()
                    continuation.resume(with: outcome)
                } else {
                    task.resume()
                }
            }
        } onCancel: {
            cancel()
        }
    }

    /// The next bytes of the body; nil at its end.
    func next() async throws -> ByteChunk? {
        if Task.isCancelled { cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                perform(state.withLock { $0.read(continuation) })
            }
        } onCancel: {
            cancel()
        }
    }

    /// Ends the exchange with `CancellationError`, unless its body has been read to the end.
    func cancel() {
        perform(state.withLock { $0.fail(CancellationError(), keepsBuffer: false, overrides: true) })
    }

    /// Ends the exchange with `.timeout` if its head is not there.
    func timeOut() {
        perform(
            state.withLock { state in
                state.head == nil
                    ? state.fail(TransferFailure.timeout(state.progress), keepsBuffer: false) : []
            }
        )
    }

    /// When something was last seen to happen before the head.
    var lastActivity: MonotonicInstant { state.withLock { $0.lastActivity } }

    // MARK: For the delegate

    /// Part of the request body has left.
    func receivedProgress(sent: Int64, of expected: Int64) {
        let instant = now()
        state.withLock { $0.noteSent(sent, of: expected, at: instant) }
    }

    /// A head has come: an interim one, or the one to answer with.
    func received(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse else {
            let error = ServiceError(
                .unsupported,
                "The URL is not one of HTTP; use http or https.",
                progress: .headReceived
            )
            return perform(state.withLock { $0.fail(error, keepsBuffer: false) })
        }
        if (100...199).contains(response.statusCode) && response.statusCode != 101 {
            let instant = now()
            state.withLock { $0.lastActivity = instant }
            onInterim(response.head)
        } else {
            perform(state.withLock { $0.note(response) })
        }
    }

    /// Bytes of the body have come.
    func received(_ data: Data) {
        guard !data.isEmpty else { return }
        let chunk = ByteChunk(copying: data)
        switch state.withLock({ $0.place(chunk) }) {
        case .done(let actions):
            perform(actions)
        case .spill(let offset, let file):
            do {
                let file = try file ?? SpillFile()
                try file.write(chunk, at: offset)
                perform(state.withLock { $0.spilled(chunk.count, to: file) })
            } catch {
                perform(
                    state.withLock { state in
                        state.fail(TransferFailure.spillFailed(error, state.progress), keepsBuffer: false)
                    }
                )
            }
        case .refused:
            perform(
                state.withLock { state in
                    state.fail(TransferFailure.bodyTooLarge(diskLimit, state.progress), keepsBuffer: false)
                }
            )
        }
    }

    /// A whole body has come at once.
    func received(whole data: Data) {
        guard !data.isEmpty else { return }
        let chunk = ByteChunk(copying: data)
        perform(state.withLock { $0.keep(chunk) })
    }

    /// Whether the connection had been used before.
    func receivedConnectionReuse(_ isReused: Bool) {
        state.withLock { $0.connectionReused = isReused }
    }

    #if !canImport(Darwin)
        /// The session asks what to do about a redirect; whether it is to be told.
        func beginsRedirect() -> Bool { state.withLock { $0.beginsRedirect() } }
    #endif

    /// The connection, used before, broke without an answer.
    func receivedStaleConnection() {
        perform(
            state.withLock { state in
                state.connectionReused = true
                return state.fail(TransferFailure.staleConnection(state.progress), keepsBuffer: false)
            }
        )
    }

    /// The transfer is over; what was buffered can still be read.
    func receivedEnd(_ error: (any Error)?) {
        perform(
            state.withLock { state in
                guard let error else { return state.finish() }
                if let cause = state.fileFailure {
                    return state.fail(TransferFailure.changedFile(cause, state.progress), keepsBuffer: true)
                }
                let failure = TransferFailure.serviceError(
                    for: error,
                    url: url,
                    progress: state.progress,
                    connectionReused: state.connectionReused,
                    hasSentContent: state.hasSentContent
                )
                return state.fail(failure, keepsBuffer: true)
            }
        )
    }

    #if !canImport(Darwin)
        /// Cancels a task, which waits until its session has handed over what it has just read.
        private func end(_ task: URLSessionTask) {
            // On the delegate's own queue each would wait for the other.
            guard OperationQueue.current is DelegateQueue else { return task.cancel() }
            DispatchQueue.global().async { task.cancel() }
        }
    #endif

    private func perform(_ actions: [ExchangeState.Action]) {
        for action in actions {
            switch action {
            case .resumeHead(let continuation, let outcome):
                continuation.resume(with: outcome)
            case .resumeReader(let continuation, let outcome):
                continuation.resume(with: outcome)
            case .cancel(let task):
                #if canImport(Darwin)
                    task.cancel()
                #else
                    end(task)
                #endif
            case .release:
                // The references end with the action.
                break
            case .readBack(let continuation, let file, let offset, let count):
                file.read(count, at: offset) { outcome in
                    let outcome = self.state.withLock { $0.readBack(count, outcome) }
                    continuation.resume(with: outcome)
                }
            }
        }
    }
}

/// The body of an exchange as its one reader sees it; dropping it ends the transfer.
final class URLSessionBodySource: ByteSource {
    private let exchange: URLSessionExchange

    init(_ exchange: URLSessionExchange) {
        self.exchange = exchange
    }

    deinit { exchange.cancel() }

    func next() async throws -> ByteChunk? {
        try await exchange.next()
    }

    func cancel() {
        exchange.cancel()
    }
}
