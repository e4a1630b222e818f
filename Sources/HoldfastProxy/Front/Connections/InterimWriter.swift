// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics
    internal import NIOCore
    private import Synchronization

    /// Writes the interim responses of one request, before its final one and never after.
    final class InterimWriter: Sendable {
        private let channel: ByteChannel
        /// How many more may be written; none once the final response began.
        private let allowance: Mutex<Int>

        init(_ channel: ByteChannel, allows: Bool) {
            self.channel = channel
            allowance = Mutex(allows ? 32 : 0)
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

        /// Writes nothing from now on; on the event loop.
        func end() {
            allowance.withLock { $0 = 0 }
        }

        private func write(_ head: ResponseHead) {
            guard allowance.withLock({ $0 > 0 }) else { return }
            var bytes = ByteBuffer()
            ResponseHeadWriter.write(head.status, head.fields, framing: .init(.unsaid), to: &bytes)
            let message = bytes
            let work = { @Sendable in
                let isAllowed = self.allowance.withLock { allowance in
                    guard allowance > 0 else { return false }
                    allowance -= 1
                    return true
                }
                if isAllowed { self.channel.offer(message) }
            }
            if channel.eventLoop.inEventLoop { work() } else { channel.eventLoop.execute(work) }
        }
    }
#endif
