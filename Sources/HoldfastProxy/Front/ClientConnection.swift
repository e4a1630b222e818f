// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics
    internal import NIOCore
    internal import Synchronization

    /// A connection that a server keeps track of.
    protocol ServedConnection: AnyObject, Sendable {
        /// Closes the connection if it has no active requests; otherwise it closes after them.
        func closeIfIdle()

        /// Ends everything at once.
        func cut()

        /// Whether the client has no complete request that is being handled or answered; from any thread.
        var isWaiting: Bool { get }
    }

    /// One connection of a client, shared by the server and the connection's own task.
    final class ClientConnection: ServedConnection {
        /// What the connection is doing; changed only on its event loop.
        private enum Phase: Sendable {
            /// Nothing of a request has arrived.
            case idle
            /// A head, or content that nobody reads, is arriving, or the client has to close its side.
            case waiting
            /// A head is being refused, or a response is being sent that can no longer be cancelled.
            case busy
            /// The handler is working.
            case answering
        }

        let channel: ByteChannel
        let configuration: ServerConfiguration
        let handler: any ClientHandler
        let counters: ServerCounters
        private let state = Mutex((phase: Phase.idle, task: Task<Void, Never>?.none))

        init(
            _ channel: ByteChannel,
            configuration: ServerConfiguration,
            handler: any ClientHandler,
            counters: ServerCounters
        ) {
            self.channel = channel
            self.configuration = configuration
            self.handler = handler
            self.counters = counters
        }

        /// Serves the connection until its end, in a task on its event loop.
        func start(on executor: EventLoopExecutor) {
            channel.whenInputEnds { [weak self] in self?.clientLeft() }
            let task = Task(executorPreference: executor) {
                var service = ConnectionService(self)
                await service.run()
            }
            state.withLock { $0.task = task }
        }

        /// Responds that there are too many connections, and closes.
        func refuse(on executor: EventLoopExecutor) {
            let task = Task(executorPreference: executor) {
                var service = ConnectionService(self)
                await service.refuseConnection()
            }
            state.withLock { $0.task = task }
        }

        /// Whether connections should end after the current response.
        var isDraining: Bool { counters.isDraining.load(ordering: .relaxed) }

        var isWaiting: Bool {
            state.withLock { state in
                switch state.phase {
                case .idle, .waiting: true
                case .busy, .answering: false
                }
            }
        }

        func becomeIdle() { state.withLock { $0.phase = .idle } }
        func awaitClient() { state.withLock { $0.phase = .waiting } }
        func becomeBusy() { state.withLock { $0.phase = .busy } }

        /// Begins a response; from now on it is cancelled if the client leaves.
        func beginAnswer() {
            state.withLock { $0.phase = .answering }
            counters.begin()
        }

        func endAnswer() {
            state.withLock { $0.phase = .busy }
            counters.end()
        }

        /// Closes the connection if nothing of a request has arrived.
        func closeIfIdle() {
            channel.onLoop {
                let isIdle = self.state.withLock { if case .idle = $0.phase { true } else { false } }
                if isIdle { self.channel.cancelRead() }
            }
        }

        /// Ends everything at once.
        func cut() {
            let task = state.withLock { $0.task }
            task?.cancel()
            channel.close()
        }

        /// The client closed its side or the connection broke: no one waits for the current response.
        private func clientLeft() {
            let task = state.withLock { state -> Task<Void, Never>? in
                guard case .answering = state.phase else { return nil }
                return state.task
            }
            task?.cancel()
        }
    }

    /// Writes the interim responses of one request, always before its final one.
    final class InterimWriter: Sendable {
        private struct State {
            /// How many more may be written; none once the final response began.
            var allowance: Int
            /// Bytes that wait for their turn on the event loop.
            var pending = ByteBuffer()
        }

        private let channel: ByteChannel
        private let state: Mutex<State>

        init(_ channel: ByteChannel, allows: Bool) {
            self.channel = channel
            state = Mutex(State(allowance: allows ? 32 : 0))
        }

        /// Writes an interim response; 100 and 101 are left to the server.
        func send(_ head: ResponseHead) {
            guard head.status.isInformational, head.status.rawValue > 101 else { return }
            write(head)
        }

        /// Tells the client to send its content.
        func sendContinue() {
            write(ResponseHead(status: 100))
        }

        /// Writes everything sent from other threads so far, and nothing from now on; on the event loop.
        func end() {
            state.withLock { $0.allowance = 0 }
            flush()
        }

        private func write(_ head: ResponseHead) {
            let isFirst = state.withLock { state in
                guard state.allowance > 0 else { return false }
                state.allowance -= 1
                let isFirst = state.pending.readableBytes == 0
                ResponseHeadWriter.write(head.status, fields: head.fields, framing: .init(.unsaid), to: &state.pending)
                return isFirst
            }
            guard isFirst else { return }
            if channel.eventLoop.inEventLoop { flush() } else { channel.eventLoop.execute { self.flush() } }
        }

        private func flush() {
            let bytes = state.withLock { state in
                defer { state.pending = ByteBuffer() }
                return state.pending
            }
            if bytes.readableBytes > 0 { channel.offer(bytes) }
        }
    }
#endif
