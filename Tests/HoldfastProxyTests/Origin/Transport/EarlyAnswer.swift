// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOPosix

    /// A server that answers the first bytes of a request, whatever is still to come, and reads nothing more.
    enum EarlyAnswer {
        /// Starts a server that lasts as long as the process.
        static func start(status: Int) async throws -> Int {
            let answer = "HTTP/1.1 \(status) X\r\nContent-Length: 5\r\n\r\nearly"
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelOption(.maxMessagesPerRead, value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Answerer(answer))
                    }
                }
                .bind(host: "127.0.0.1", port: 0)
                .get()
            return listener.localAddress?.port ?? 0
        }

        private final class Answerer: ChannelInboundHandler {
            typealias InboundIn = ByteBuffer
            typealias OutboundOut = ByteBuffer

            private var answer: String?

            init(_ answer: String) {
                self.answer = answer
            }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                guard let answer else { return }
                self.answer = nil
                try? context.channel.syncOptions?.setOption(.autoRead, value: false)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
            }

            func errorCaught(context: ChannelHandlerContext, error: any Error) {
                context.close(promise: nil)
            }
        }
    }

    /// Content without an end.
    final class EndlessSource: ByteSource {
        /// Counts how often it was let go of.
        let ended = CountWatch()

        func next() async throws -> ByteChunk? {
            guard ended.count == 0 else { throw CancellationError() }
            try Task.checkCancellation()
            return TransferPattern.bytes(60_000, at: 0)
        }

        func cancel() {
            ended.increment()
        }
    }
#endif
