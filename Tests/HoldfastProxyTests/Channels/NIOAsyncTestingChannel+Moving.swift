// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import NIOCore
    import NIOEmbedded

    /// What the other side of a channel does, and what comes of it before the call ends.
    extension NIOAsyncTestingChannel {
        /// Lets everything happen that can happen now: all of it does on the channel's event loop.
        func settle() async {
            for _ in 0..<20 { await testingEventLoop.run() }
        }

        /// Bytes arrive.
        func arrive(_ text: String) async throws {
            try await testingEventLoop.executeInContext {
                self.pipeline.fireChannelRead(ByteBuffer(string: text))
                self.pipeline.fireChannelReadComplete()
            }
            await settle()
        }

        /// No bytes will arrive any more.
        func endInput() async throws {
            try await testingEventLoop.executeInContext {
                self.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
            await settle()
        }

        /// The other side takes bytes again, or no more.
        func setWritable(_ isWritable: Bool) async throws {
            self.isWritable = isWritable
            try await testingEventLoop.executeInContext { self.pipeline.fireChannelWritabilityChanged() }
            await settle()
        }

        /// What was sent since this was asked for last.
        func sent() async throws -> String {
            var text = ""
            while let buffer = try await readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
            return text
        }
    }
#endif
