// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics
    internal import NIOCore
    private import Synchronization

    /// Writes the interim responses of one request, before its final one and never after.
    final class InterimWriter: Sendable {
        private struct State {
            /// How many more may be written; none once the final response began.
            var allowance: Int
            /// What waits for its turn on the event loop.
            var pending = ByteBuffer()
        }

        private let channel: ByteChannel
        private let state: Mutex<State>

        init(_ channel: ByteChannel, allows: Bool) {
            self.channel = channel
            state = Mutex(State(allowance: allows ? 32 : 0))
        }

        /// Writes an interim response; 100 and 101 are the server's own affair.
        func send(_ head: ResponseHead) {
            guard head.status.isInformational, head.status.rawValue > 101 else { return }
            write(head)
        }

        /// Tells the client to send its content.
        func sendContinue() {
            write(ResponseHead(status: 100))
        }

        /// Writes what was sent from other threads so far, and nothing from now on; on the event loop.
        func end() {
            state.withLock { $0.allowance = 0 }
            flush()
        }

        private func write(_ head: ResponseHead) {
            let isFirst = state.withLock { state in
                guard state.allowance > 0 else { return false }
                state.allowance -= 1
                let isFirst = state.pending.readableBytes == 0
                ResponseHeadWriter.write(head.status, head.fields, framing: .init(.unsaid), to: &state.pending)
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
