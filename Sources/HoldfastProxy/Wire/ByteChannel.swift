// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore
    private import NIOSSL
    private import Synchronization

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Glibc)
        private import Glibc
    #elseif canImport(Musl)
        private import Musl
    #endif

    /// A SwiftNIO channel as bytes that tasks read and write, with back-pressure both ways.
    ///
    /// At most one buffer is read ahead of what was requested, so that the end of the input is noticed although no one
    /// reads. (When the peer closes, the channel returns at once what the kernel still has of it.) Reads and writes may
    /// be called on any thread; on the channel's event loop they need no hop, and no suspension if bytes are available
    /// or there is room. Only one task may read at a time, and only one write. Releasing the last reference closes
    /// nothing: call ``close()``.
    package final class ByteChannel: Sendable {
        /// The underlying channel.
        package let channel: any Channel
        /// Its event loop.
        package let eventLoop: any EventLoop

        private let state = Mutex(ByteChannelState())

        /// Whether the channel is a socket; an HTTP/2 stream supports fewer options and traps on others.
        private let isSocket: Bool
        /// What an HTTP/2 stream has not sent; nil for a socket, which knows.
        private let unsentOfStream: UnsentBytes?

        private init(_ channel: any Channel, isSocket: Bool, unsent: UnsentBytes?) {
            self.channel = channel
            self.isSocket = isSocket
            unsentOfStream = unsent
            eventLoop = channel.eventLoop
        }

        /// Makes a byte channel the end of a channel's pipeline; call it on the event loop, for example in a channel
        /// initializer.
        ///
        /// Turns automatic reading off and half-closure on; existing handlers, such as TLS, stay in front.
        ///
        /// - Parameters:
        ///   - isSocket: false for an HTTP/2 stream.
        ///   - unsent: what such a stream has not sent.
        package static func attach(
            to channel: any Channel,
            isSocket: Bool = true,
            unsent: UnsentBytes? = nil
        ) throws -> ByteChannel {
            let bytes = ByteChannel(channel, isSocket: isSocket, unsent: unsent)
            if let options = channel.syncOptions {
                try options.setOption(.autoRead, value: false)
                if isSocket {
                    // Channels for tests support neither; sockets do.
                    try? options.setOption(.maxMessagesPerRead, value: 1)
                    try? options.setOption(.allowRemoteHalfClosure, value: true)
                }
            }
            try channel.pipeline.syncOperations.addHandler(ByteChannelHandler(bytes))
            return bytes
        }

        /// Whether the connection is open, as far as this side knows.
        package var isActive: Bool { channel.isActive }

        /// Whether ``close()`` was called.
        package var isClosedHere: Bool { state.withLock { $0.isClosedHere } }

        /// Whether there are unread bytes, or the input has ended: an idle client connection is then useless.
        package var hasInputOrEnded: Bool { state.withLock { $0.isReadable } }

        /// Calls `action` once, on the event loop, when the peer closes its side or the connection breaks; at once if
        /// it has.
        ///
        /// A later action replaces the previous one, nil removes it.
        package func whenInputEnds(_ action: (@Sendable () -> Void)?) {
            let hasEnded = state.withLock { state in
                let ended = state.hasEnded
                state.onInputEnd = ended ? nil : action
                return ended
            }
            if hasEnded { onLoop { action?() } }
        }

        // MARK: Reading

        /// The next bytes, at least one; nil once the peer has closed its side and everything was returned.
        ///
        /// - Parameter deadline: when a wait ends with `.readTimedOut`, by the event loop's clock; nil: never.
        /// - Throws: ``ChannelFault``, or `CancellationError` as soon as the waiting task is cancelled; nothing is lost
        ///   in either case.
        package func read(by deadline: NIODeadline? = nil) async throws -> ByteBuffer? {
            switch state.withLock({ $0.read() }) {
            case .bytes(let bytes, let asksForMore):
                if asksForMore { requestBytes() }
                return bytes
            case .end: return nil
            case .failure(let fault): throw fault
            case .wait: return try await waitForBytes(by: deadline)
            }
        }

        /// Puts bytes back to be read next.
        package func putBack(_ bytes: ByteBuffer) {
            state.withLock { $0.putBack(bytes) }
        }

        private func waitForBytes(by deadline: NIODeadline?) async throws -> ByteBuffer? {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let (reading, deadline) = state.withLock { state in
                        let reading = state.wait(continuation, by: deadline)
                        return (reading, state.deadlineToArm())
                    }
                    switch reading {
                    case .bytes(let bytes, let asksForMore):
                        if asksForMore { requestBytes() }
                        continuation.resume(returning: bytes)
                    case .end: continuation.resume(returning: nil)
                    case .failure(let fault): continuation.resume(throwing: fault)
                    case .wait: if Task.isCancelled { cancelRead() }
                    }
                    if let deadline { arm(deadline) }
                }
            } onCancel: {
                cancelRead()
            }
        }

        /// Ends a waiting ``read(by:)`` with `CancellationError`; nothing is lost.
        package func cancelRead() {
            state.withLock { $0.takeReader() }?.resume(throwing: CancellationError())
        }

        private func requestBytes() {
            onLoop { if self.wantsBytes { self.channel.read() } }
        }

        // MARK: Writing

        /// Sends bytes; waits only while more than the channel's high-water mark is unsent.
        ///
        /// - Parameter stallLimit: how long the peer may read nothing before the wait ends with `.writeStalled`; nil:
        ///   forever.
        /// - Throws: ``ChannelFault``; `CancellationError` if the task is cancelled while it waits: the bytes are then
        ///   not sent.
        package func write(_ bytes: ByteBuffer, stallLimit: TimeAmount? = nil) async throws {
            if eventLoop.inEventLoop, channel.isWritable {
                if let fault = state.withLock({ $0.outputFault }) { throw fault }
                return channel.writeAndFlush(bytes, promise: nil)
            }
            try await waitToWrite(bytes, stallLimit: stallLimit)
        }

        /// Waits until everything written has left this process; limits and errors as for ``write(_:stallLimit:)``.
        package func flush(stallLimit: TimeAmount? = nil) async throws {
            try await waitToWrite(nil, stallLimit: stallLimit)
        }

        /// Sends bytes without waiting, or drops them if there is no room; in the order of calls from one thread.
        package func offer(_ bytes: ByteBuffer) {
            onLoop { if self.channel.isWritable { self.channel.writeAndFlush(bytes, promise: nil) } }
        }

        private func waitToWrite(_ bytes: ByteBuffer?, stallLimit: TimeAmount?) async throws {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let fault = state.withLock { state -> ChannelFault? in
                        if let fault = state.outputFault { return fault }
                        guard state.pendingWrite == nil else { return ChannelFault(.closed) }
                        state.pendingWrite = .init(continuation: continuation, bytes: bytes, stallLimit: stallLimit)
                        return nil
                    }
                    if let fault { return continuation.resume(throwing: fault) }
                    if Task.isCancelled { cancelWrite() }
                    onLoop { self.pump() }
                }
            } onCancel: {
                cancelWrite()
            }
        }

        private func cancelWrite() {
            state.withLock { $0.takeWrite() }?.continuation.resume(throwing: CancellationError())
        }

        /// Sends waiting bytes, if there is room.
        func pump() {
            let isWritable = channel.isWritable
            let now = eventLoop.now
            let unsent = self.unsent
            let (write, startsFlush, deadline) = state.withLock {
                state -> (ByteChannelState.PendingWrite?, Bool, NIODeadline?) in
                guard var write = state.pendingWrite else { return (nil, false, nil) }
                if write.bytes != nil, isWritable { return (state.takeWrite(), false, nil) }
                let startsFlush = write.bytes == nil && !write.isFlushing
                write.isFlushing = write.bytes == nil
                // Only at first: later, the timer compares, and what was sent meanwhile moves the deadline.
                if write.deadline == nil { write.unsent = unsent ?? .max }
                write.deadline = write.deadline ?? write.stallLimit.map { now + $0 }
                state.pendingWrite = write
                return (nil, startsFlush, state.deadlineToArm())
            }
            if let write, let bytes = write.bytes {
                channel.writeAndFlush(bytes, promise: nil)
                write.continuation.resume()
            }
            if startsFlush {
                channel.writeAndFlush(ByteBuffer()).whenComplete { [self] outcome in
                    let writer = state.withLock { $0.pendingWrite?.isFlushing == true ? $0.takeWrite() : nil }
                    writer?.continuation.resume(with: outcome.mapError { ChannelFault(.broken, cause: $0) })
                }
            }
            if let deadline { arm(deadline) }
        }

        private var unsent: Int? {
            isSocket ? try? channel.syncOptions?.getOption(.bufferedWritableBytes) : unsentOfStream?.count
        }

        // MARK: Deadlines

        /// Sets the single timer to `deadline`; it sets itself again for later deadlines.
        private func arm(_ deadline: NIODeadline) {
            onLoop {
                let timer = self.eventLoop.scheduleTask(deadline: deadline) { [weak self] () -> Void in self?.expire() }
                let former = self.state.withLock { state in
                    defer { state.timer = timer }
                    return state.timer
                }
                former?.cancel()
            }
        }

        private func expire() {
            let now = eventLoop.now
            let unsent = self.unsent
            let (expired, deadline) = state.withLock { state in
                let expired = state.expire(now: now, unsent: unsent)
                return (expired, state.deadlineToArm())
            }
            if let deadline { arm(deadline) }
            expired.reader?.resume(throwing: ChannelFault(.readTimedOut))
            expired.writer?.resume(throwing: ChannelFault(.writeStalled))
        }

        // MARK: Closing

        /// Closes at once and drops unsent bytes; waiting calls end with `.closed`. Idempotent, on any thread.
        package func close() {
            let (ended, resets) = state.withLock { state in
                state.isClosedHere = true
                return (state.fail(ChannelFault(.closed)), state.resetsOnClose)
            }
            ended.reader?.resume(throwing: ChannelFault(.closed))
            ended.writer?.resume(throwing: ChannelFault(.closed))
            if resets {
                onLoop { self.abort() }
            } else if isSocket {
                channel.closePromptly()
            } else {
                channel.close(mode: .all, promise: nil)
            }
        }

        /// Sets whether ``close()`` resets the connection: while the peer would take its orderly end for the end of a message.
        package func resetOnClose(_ resets: Bool) {
            state.withLock { $0.resetsOnClose = resets }
        }

        /// Closes at once with a reset.
        package func reset() {
            resetOnClose(true)
            close()
        }

        /// Closes with a reset, and below TLS, whose close_notify would say that everything was sent; on the event loop.
        private func abort() {
            if let options = channel as? any SocketOptionProvider {
                _ = options.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            }
            let tls = try? channel.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
            if let tls { tls.close(promise: nil) } else { channel.close(mode: .all, promise: nil) }
        }

        /// Tells the peer that nothing more follows; call ``flush(stallLimit:)`` first. The input stays open.
        package func closeOutput() {
            channel.close(mode: .output, promise: nil)
        }

        /// Completes when the connection is closed.
        package var closeFuture: EventLoopFuture<Void> { channel.closeFuture }

        // MARK: From the handler, on the event loop

        var wantsBytes: Bool { state.withLock { $0.wantsBytes } }

        func receive(_ bytes: ByteBuffer) {
            state.withLock { $0.receive(bytes) }?.resume(returning: bytes)
        }

        func endInput() {
            if let ended = state.withLock({ $0.endInput() }) { finish(ended) }
        }

        func fail(_ error: any Error) {
            finish(state.withLock { $0.fail(ChannelFault(.broken, cause: error)) })
        }

        func becomeInactive() {
            // A stream of HTTP/2 ends its content before it closes; if it has not, content is missing (RFC 9113 §8.1).
            if isSocket { endInput() }
            finish(state.withLock { $0.fail(ChannelFault(.broken)) })
            state.withLock { state in
                defer { state.timer = nil }
                return state.timer
            }?.cancel()
        }

        private func finish(_ ended: ByteChannelState.Ended) {
            ended.reader?.resume(with: state.withLock { $0.outcome() })
            ended.writer?.resume(throwing: state.withLock { $0.outputFault } ?? ChannelFault(.broken))
            ended.action?()
        }

        func onLoop(_ work: @escaping @Sendable () -> Void) {
            if eventLoop.inEventLoop { work() } else { eventLoop.execute(work) }
        }

        /// Yields to the other channels of the event loop, which `Task.yield()` does not do: a loop runs what is
        /// already scheduled before it checks for arrived bytes.
        package func yield() async {
            await withCheckedContinuation { continuation in
                eventLoop.scheduleTask(in: .microseconds(50)) {}.futureResult.whenComplete { _ in continuation.resume()
                }
            }
        }
    }

    /// The end of a pipeline whose bytes a ``ByteChannel`` returns.
    final class ByteChannelHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let channel: ByteChannel

        init(_ channel: ByteChannel) {
            self.channel = channel
        }

        func handlerAdded(context: ChannelHandlerContext) {
            if context.channel.isActive { context.read() }
        }

        /// A channel that never became active ends here.
        func handlerRemoved(context: ChannelHandlerContext) {
            channel.becomeInactive()
        }

        func channelActive(context: ChannelHandlerContext) {
            context.read()
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            channel.receive(unwrapInboundIn(data))
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            // Requested here, the next read needs no system call.
            if channel.wantsBytes { context.read() }
        }

        func channelWritabilityChanged(context: ChannelHandlerContext) {
            channel.pump()
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let event = event as? ChannelEvent, event == .inputClosed { channel.endInput() }
            context.fireUserInboundEventTriggered(event)
        }

        func channelInactive(context: ChannelHandlerContext) {
            channel.becomeInactive()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            channel.fail(error)
            context.close(promise: nil)
        }
    }

    /// The bytes that an HTTP/2 stream was given and that have not left this process.
    package final class UnsentBytes: Sendable {
        private let bytes = Atomic(0)

        package init() {}

        var count: Int { bytes.load(ordering: .relaxed) }

        func add(_ count: Int) { bytes.add(count, ordering: .relaxed) }

        func subtract(_ count: Int) { bytes.subtract(count, ordering: .relaxed) }
    }

    /// Runs tasks on one event loop, so that they use its channels without a hop.
    ///
    /// Pass it to `Task(executorPreference:)`. Code there must not block: all connections of the loop would wait.
    package final class EventLoopExecutor: TaskExecutor {
        /// The loop.
        package let eventLoop: any EventLoop

        /// Creates an executor for this loop.
        package init(_ eventLoop: any EventLoop) {
            self.eventLoop = eventLoop
        }

        package func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            eventLoop.execute {
                job.runSynchronously(on: self.asUnownedTaskExecutor())
            }
        }
    }

    /// Why a ``ByteChannel`` can no longer be read or written.
    package struct ChannelFault: Error, Sendable, CustomStringConvertible {
        /// The kinds of fault.
        package enum Kind: Sendable, Hashable {
            /// This side closed the channel.
            case closed
            /// The connection broke, or the peer closed it during a write.
            case broken
            /// The deadline of a read passed; the channel is unchanged.
            case readTimedOut
            /// The peer read nothing for the given time; part of what was written may have been sent.
            case writeStalled
        }

        /// The kind.
        package let kind: Kind
        /// What the channel reported, if anything.
        package let cause: (any Error)?

        /// Creates a fault.
        package init(_ kind: Kind, cause: (any Error)? = nil) {
            self.kind = kind
            self.cause = cause
        }

        package var description: String {
            let text =
                switch kind {
                case .closed: "The connection was closed on this side."
                case .broken: "The connection broke."
                case .readTimedOut: "Nothing was received for too long."
                case .writeStalled: "The peer read nothing for too long."
                }
            return text + (cause.map { " (\($0))" } ?? "")
        }
    }
#endif
