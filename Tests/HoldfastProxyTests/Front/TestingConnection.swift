// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import NIOCore
    import NIOEmbedded

    @testable import HoldfastProxy

    /// A connection of the server over a channel and a clock that move when the test says so.
    struct TestingConnection {
        let channel: NIOAsyncTestingChannel
        let counters = ServerCounters()

        init(
            configuration: ServerConfiguration = ServerConfiguration(),
            _ answer: @escaping @Sendable (ClientRequest) async -> Response
        ) async throws {
            let channel = NIOAsyncTestingChannel()
            self.channel = channel
            let counters = counters
            try await channel.testingEventLoop.executeInContext {
                let connection = ClientConnection(
                    try ByteChannel.attach(to: channel),
                    configuration: configuration,
                    handler: ClosureHandler(answer),
                    counters: counters
                )
                connection.start(on: EventLoopExecutor(channel.eventLoop))
            }
            try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).get()
            await settle()
        }

        /// Lets everything happen that can happen now: all of it does on the channel's event loop.
        func settle() async {
            for _ in 0..<20 { await channel.testingEventLoop.run() }
        }

        func arrive(_ text: String) async throws {
            let channel = channel
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireChannelRead(ByteBuffer(string: text))
                channel.pipeline.fireChannelReadComplete()
            }
            await settle()
        }

        func leave() async throws {
            let channel = channel
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
            await settle()
        }

        func setWritable(_ isWritable: Bool) async throws {
            let channel = channel
            channel.isWritable = isWritable
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireChannelWritabilityChanged()
            }
            await settle()
        }

        func advance(by time: TimeAmount) async {
            await channel.testingEventLoop.advanceTime(by: time)
            await settle()
        }

        var isOpen: Bool { channel.isActive }

        func sent() async throws -> String {
            var text = ""
            while let buffer = try await channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
            return text
        }
    }
#endif
