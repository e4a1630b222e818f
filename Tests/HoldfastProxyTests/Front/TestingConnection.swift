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

        func settle() async { await channel.settle() }
        func arrive(_ text: String) async throws { try await channel.arrive(text) }
        func leave() async throws { try await channel.endInput() }
        func setWritable(_ isWritable: Bool) async throws { try await channel.setWritable(isWritable) }
        func sent() async throws -> String { try await channel.sent() }

        func advance(by time: TimeAmount) async {
            await channel.testingEventLoop.advanceTime(by: time)
            await settle()
        }

        var isOpen: Bool { channel.isActive }
    }
#endif
