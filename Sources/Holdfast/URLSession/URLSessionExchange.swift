// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One request on its way through a URLSession: events come in from the delegate, the head and the body go to tasks.
///
/// The delegate's queue calls the `received…` methods one at a time; everything else may be called from anywhere.
final class URLSessionExchange: Sendable {
    private let state: Mutex<ExchangeState>
    private let url: URL?
    /// The call that the errors of its body name.
    let subject: CallSubject
    private let diskLimit: Int
    private let idleLimit: IdleLimit?
    private let now: @Sendable () -> MonotonicInstant
    private let onInterim: @Sendable (ResponseHead) -> Void

    /// An exchange that has not begun; `upload` is kept until it ends.
    init(
        _ upload: RequestUpload,
        limits: URLSessionTransport.Limits,
        idleLimit: IdleLimit?,
        now: @escaping @Sendable () -> MonotonicInstant,
        onInterim: @escaping @Sendable (ResponseHead) -> Void
    ) {
        url = upload.request.url
        subject = CallSubject(upload.request)
        diskLimit = limits.bodyOnDisk
        self.idleLimit = idleLimit
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

    /// Starts the task that `makeTask` returns and waits for the final response head.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly if the calling task is cancelled.
    func head(of makeTask: @escaping @Sendable () throws -> URLSessionTask) async throws -> HTTPURLResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                perform(state.withLock { $0.wait(continuation) })
                FoundationQueue.perform { self.start(makeTask) }
            }
        } onCancel: {
            cancel()
        }
    }

    private func start(_ makeTask: () throws -> URLSessionTask) {
        guard state.withLock({ $0.isRunning }) else { return }
        do {
            let task = try makeTask()
            if state.withLock({ $0.begin(task) }) { task.resume() } else { task.cancel() }
        } catch {
            perform(state.withLock { $0.fail(error, keepsBuffer: false) })
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

    /// Ends the exchange if its head has not arrived.
    ///
    /// - Parameter failure: the error, for how far the exchange has come.
    func timeOut(with failure: (TransportProgress) -> ServiceError) {
        perform(
            state.withLock { state in
                state.head == nil ? state.fail(failure(state.progress), keepsBuffer: false) : []
            }
        )
    }

    /// The last time that something was seen to happen before the head.
    var lastActivity: MonotonicInstant { state.withLock { $0.lastActivity } }

    /// Whether the head was reported only with the end, and no content before it.
    var hasEndedEmpty: Bool { state.withLock { $0.hasEndedEmpty } }

    // MARK: For the delegate

    /// Part of the request body was sent.
    func receivedProgress(sent: Int64, of expected: Int64) {
        let instant = now()
        state.withLock { $0.noteSent(sent, of: expected, at: instant) }
    }

    /// A head has arrived: an interim one, or the final one.
    func received(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse else {
            let error = ServiceError(
                .unsupported,
                "The URL's scheme is not supported. Use http or https.",
                progress: .headReceived
            )
            return perform(state.withLock { $0.fail(error, keepsBuffer: false) })
        }
        if response.isInterim {
            let instant = now()
            state.withLock { $0.lastActivity = instant }
            onInterim(response.head)
        } else {
            perform(state.withLock { $0.note(response) })
        }
    }

    /// Bytes of the body have arrived.
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
                fail { TransferFailure.spillFailed(error, progress: $0) }
            }
        case .refused:
            fail { TransferFailure.bodyTooLarge(diskLimit, progress: $0) }
        }
    }

    private func fail(with failure: (TransportProgress) -> ServiceError) {
        perform(state.withLock { state in state.fail(failure(state.progress), keepsBuffer: false) })
    }

    /// Whether the connection had been used before.
    func receivedConnectionReuse(_ isReused: Bool) {
        state.withLock { $0.connectionReused = isReused }
    }

    #if !canImport(Darwin)
        /// The session asks what to do about a redirect; returns whether it must be told.
        func beginsRedirect() -> Bool { state.withLock { $0.beginsRedirect() } }
    #endif

    /// A reused connection broke without a response.
    func receivedStaleConnection() {
        perform(
            state.withLock { state in
                state.connectionReused = true
                let failure = FailureMeaning.connectionLost.error(progress: state.progress, connectionReused: true)
                return state.fail(failure, keepsBuffer: false)
            }
        )
    }

    /// The transfer is over; buffered bytes can still be read.
    ///
    /// - Parameter lateHead: the head, if it may not have been reported; noted in one step with the end, so that whoever waits
    ///   for it sees whether content can follow.
    func receivedEnd(_ error: (any Error)?, lateHead: URLResponse? = nil) {
        perform(
            state.withLock { state in
                guard let error else {
                    // Not an interim one, which says nothing about how the exchange ended.
                    let late = (lateHead as? HTTPURLResponse).flatMap { $0.isInterim ? nil : $0 }
                    let noted = late.map { state.noteLate($0) } ?? []
                    return state.finish() + noted
                }
                if let cause = state.fileFailure {
                    return state.fail(TransferFailure.changedFile(cause, progress: state.progress), keepsBuffer: true)
                }
                var failure = TransferFailure.serviceError(
                    for: error,
                    url: url,
                    progress: state.progress,
                    connectionReused: state.connectionReused,
                    hasSentContent: state.hasSentContent
                )
                if (error as? URLError)?.code == .timedOut, let idleLimit { failure.message = idleLimit.message }
                if failure.code == .connectionLost, let head = state.head {
                    // What has arrived is counted after decoding.
                    let isDecoded = ContentCodings.areUndone(head.head.fields.values(of: "Content-Encoding"))
                    let length = isDecoded ? nil : head.contentLength
                    failure.message = FailureMeaning.brokenBody(received: state.receivedBytes, of: length).message
                }
                return state.fail(failure, keepsBuffer: true)
            }
        )
    }

    private func perform(_ actions: [ExchangeState.Action]) {
        for action in actions {
            switch action {
            case .resumeHead(let continuation, let outcome):
                continuation.resume(with: outcome)
            case .resumeReader(let continuation, let outcome):
                continuation.resume(with: outcome)
            case .cancel(let task):
                FoundationQueue.perform { task.cancel() }
            case .release:
                // The references end with the action.
                break
            case .readBack(let continuation, let file, let offset, let count):
                file.read(count, at: offset) { outcome in
                    self.perform(self.state.withLock { $0.readBack(count, outcome: outcome, for: continuation) })
                }
            }
        }
    }
}

/// The body of an exchange for its one reader; dropping it ends the transfer.
final class URLSessionBodySource: ByteSource {
    private let exchange: URLSessionExchange

    init(_ exchange: URLSessionExchange) { self.exchange = exchange }

    deinit { exchange.cancel() }

    func next() async throws -> ByteChunk? {
        do {
            return try await exchange.next()
        } catch {
            throw error.naming(exchange.subject)
        }
    }

    func cancel() { exchange.cancel() }
}

/// The state of one exchange; each change returns what to do once the lock is released.
struct ExchangeState {
    typealias HeadContinuation = CheckedContinuation<HTTPURLResponse, any Error>
    typealias ReaderContinuation = CheckedContinuation<ByteChunk?, any Error>

    /// Something to do outside the lock.
    enum Action {
        case resumeHead(HeadContinuation, Result<HTTPURLResponse, any Error>)
        case resumeReader(ReaderContinuation, Result<ByteChunk?, any Error>)
        case readBack(ReaderContinuation, SpillFile, offset: Int, count: Int)
        case cancel(URLSessionTask)
        /// Releases files, whose end is I/O.
        case release(RequestUpload?, SpillFile?)
    }

    /// What happens to bytes that have arrived.
    enum Arrival {
        case done([Action])
        case spill(offset: Int, SpillFile?)
        case refused
    }

    private enum Transfer {
        case running
        case finished
        case failed(any Error)
    }

    /// How far the exchange has certainly or possibly progressed.
    private(set) var progress = TransportProgress.notSent
    /// The final response head.
    private(set) var head: HTTPURLResponse?
    /// The last time that something was seen to happen before the head.
    var lastActivity: MonotonicInstant
    /// Whether the connection had been used before, if the platform says so.
    var connectionReused = false

    /// Whether some of the content was seen to leave.
    private(set) var hasSentContent = false
    /// How much of the response's body has arrived.
    private(set) var receivedBytes = 0

    private var upload: RequestUpload?
    private var buffer: BodyBuffer
    private var transfer = Transfer.running
    private var task: URLSessionTask?
    private var headWaiter: HeadContinuation?
    private var reader: ReaderContinuation?
    private var isReadingBack = false
    private var spillFile: SpillFile?
    private var isReadToEnd = false
    private var isRedirecting = false
    private var hasLateHead = false
    private var wasCancelled = false

    init(upload: RequestUpload, buffer: BodyBuffer, start: MonotonicInstant) {
        self.upload = upload
        self.buffer = buffer
        lastActivity = start
    }

    /// Whether the transfer has not ended.
    var isRunning: Bool { if case .running = transfer { true } else { false } }

    /// Whether the transfer has ended normally without any content, of which the platform may have passed on none.
    var hasEndedEmpty: Bool { if case .finished = transfer { hasLateHead && receivedBytes == 0 } else { false } }

    /// The final head was reported only with the end of the transfer.
    mutating func noteLate(_ response: HTTPURLResponse) -> [Action] {
        if head == nil, isRunning { hasLateHead = true }
        return note(response)
    }

    /// The caller waits for the head.
    mutating func wait(_ continuation: HeadContinuation) -> [Action] {
        if case .failed(let error) = transfer { return [.resumeHead(continuation, .failure(error))] }
        headWaiter = continuation
        return []
    }

    /// Takes the task to run; returns false if the exchange has ended before.
    mutating func begin(_ task: URLSessionTask) -> Bool {
        guard isRunning else { return false }
        self.task = task
        // URLSession does not report that the head was sent. A request without content may have been sent completely.
        progress = upload?.hasContent == true ? .headSent : .bodySent
        return true
    }

    /// Why the file with the request body could not be sent as it was.
    var fileFailure: (any Error)? { upload?.file?.failure }

    /// Part of the request body was sent; a length of zero or less is unknown, but that of a file is always known.
    mutating func noteSent(_ sent: Int64, of expected: Int64, at instant: MonotonicInstant) {
        lastActivity = instant
        if sent > 0 { hasSentContent = true }
        let expected = expected > 0 ? expected : Int64(upload?.file?.count ?? 0)
        if expected > 0 && sent >= expected { progress = max(progress, .bodySent) }
    }

    /// The final head has arrived.
    mutating func note(_ response: HTTPURLResponse) -> [Action] {
        guard case .running = transfer, head == nil else { return [] }
        head = response
        progress = max(progress, .headReceived)
        guard let waiter = headWaiter else { return [] }
        headWaiter = nil
        return [.resumeHead(waiter, .success(response))]
    }

    /// Finds the place of bytes that have arrived.
    mutating func place(_ chunk: ByteChunk) -> Arrival {
        guard case .running = transfer else { return .done([]) }
        progress = .bytesReceived
        receivedBytes += chunk.count
        switch buffer.place(chunk) {
        case .memory: return .done(serveReader())
        case .spill(let offset): return .spill(offset: offset, spillFile)
        case .refused: return .refused
        }
    }

    /// Bytes were written to `file`.
    mutating func spilled(_ count: Int, to file: SpillFile) -> [Action] {
        guard case .running = transfer else { return [] }
        spillFile = file
        buffer.spilled(count)
        return serveReader()
    }

    /// A reader wants the next bytes.
    mutating func read(_ continuation: ReaderContinuation) -> [Action] {
        guard reader == nil, !isReadingBack else {
            return [.resumeReader(continuation, .failure(ServiceError.secondReader))]
        }
        reader = continuation
        return serveReader()
    }

    /// Bytes of the spill file have been read, or not, for a reader that waits for them.
    mutating func readBack(
        _ count: Int,
        outcome: Result<ByteChunk, any Error>,
        for waiting: ReaderContinuation
    ) -> [Action] {
        isReadingBack = false
        if case .failed(let error) = transfer, spillFile == nil { return [.resumeReader(waiting, .failure(error))] }
        switch outcome {
        case .success(let chunk):
            buffer.readBack(count)
            return [.resumeReader(waiting, .success(chunk))]
        case .failure(let error):
            let failure = TransferFailure.spillFailed(error, progress: progress)
            let actions = fail(failure, keepsBuffer: false, overrides: true)
            return [.resumeReader(waiting, .failure(failure))] + actions
        }
    }

    /// The transfer has ended normally.
    mutating func finish() -> [Action] {
        guard case .running = transfer else { return [] }
        guard head != nil else {
            return fail(
                ServiceError(
                    .protocolError,
                    "The connection ended without a response. Check that the URL leads to an HTTP server.",
                    progress: progress
                ),
                keepsBuffer: false
            )
        }
        transfer = .finished
        let released = release()
        return released + serveReader()
    }

    /// The transfer has failed, or must fail.
    ///
    /// - Parameters:
    ///   - keepsBuffer: whether bytes that arrived before can still be read.
    ///   - overrides: whether this replaces an earlier end that the reader has not seen yet.
    mutating func fail(_ error: any Error, keepsBuffer: Bool, overrides: Bool = false) -> [Action] {
        var actions: [Action] = []
        let task = task
        switch transfer {
        case .running:
            break
        case .finished, .failed:
            guard overrides, !isReadToEnd else { return [] }
        }
        transfer = .failed(error)
        actions += release()
        if !keepsBuffer { actions += drop() }
        if let waiter = headWaiter {
            headWaiter = nil
            actions.append(.resumeHead(waiter, .failure(error)))
        }
        actions += serveReader()
        // Last: on Linux, it may have to wait for the session's current work. A redirect ends by itself.
        if let task, !isRedirecting {
            wasCancelled = true
            actions.append(.cancel(task))
        }
        return actions
    }

    /// The session asks what to do about a redirect; returns whether it must be told.
    ///
    /// Foundation on Linux traps if it is told after its task was cancelled, or if the task is cancelled before it has processed
    /// the answer.
    mutating func beginsRedirect() -> Bool {
        if wasCancelled { return false }
        isRedirecting = true
        return true
    }

    private mutating func serveReader() -> [Action] {
        guard let waiting = reader else { return [] }
        switch buffer.next() {
        case .chunk(let chunk):
            reader = nil
            return [.resumeReader(waiting, .success(chunk))]
        case .spilled(let offset, let count):
            guard let spillFile else { return [] }
            reader = nil
            isReadingBack = true
            return [.readBack(waiting, spillFile, offset: offset, count: count)]
        case .empty:
            switch transfer {
            case .running:
                return []
            case .finished:
                reader = nil
                isReadToEnd = true
                return [.resumeReader(waiting, .success(nil))]
            case .failed(let error):
                reader = nil
                return [.resumeReader(waiting, .failure(error))]
            }
        }
    }

    private mutating func release() -> [Action] {
        task = nil
        guard let ended = upload else { return [] }
        upload = nil
        return [.release(ended, nil)]
    }

    private mutating func drop() -> [Action] {
        buffer.removeAll()
        guard let file = spillFile else { return [] }
        spillFile = nil
        return [.release(nil, file)]
    }
}

extension HTTPURLResponse {
    /// Whether another head follows.
    fileprivate var isInterim: Bool { (100...199).contains(statusCode) && statusCode != 101 }
}
