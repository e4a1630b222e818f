// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOHPACK
    import NIOHTTP2
    import NIOPosix
    import NIOSSL
    import Synchronization

    /// A client that speaks HTTP/2 over TLS, and says what it likes.
    final class HTTP2Client: Sendable {
        /// What came of a request.
        struct Answer: Sendable {
            var heads: [HPACKHeaders] = []
            var body: [UInt8] = []
            /// How the stream was reset; nil where it was not.
            var reset: HTTP2ErrorCode?
            /// Whether the stream ended as it should.
            var isWhole = false

            var status: String? { heads.last?[":status"].first }
            var text: String { String(decoding: body, as: UTF8.self) }
        }

        let channel: any Channel
        let multiplexer: NIOHTTP2Handler.StreamMultiplexer
        /// The GOAWAY frames that came.
        let goAways: CountWatch

        private init(_ channel: any Channel, _ multiplexer: NIOHTTP2Handler.StreamMultiplexer, goAways: CountWatch) {
            self.channel = channel
            self.multiplexer = multiplexer
            self.goAways = goAways
        }

        static func connect(port: Int) async throws -> HTTP2Client {
            var tls = try LoopbackCertificate.trustingConfiguration()
            tls.applicationProtocols = ["h2"]
            tls.certificateVerification = .none
            let context = try NIOSSLContext(configuration: tls)
            let watch = CountWatch()
            let made = Mutex<NIOHTTP2Handler.StreamMultiplexer?>(nil)
            var configuration = NIOHTTP2Handler.ConnectionConfiguration()
            // What a test says is the server's to judge.
            configuration.headerBlockValidation = .disabled
            configuration.contentLengthValidation = .disabled
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { [configuration] channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: nil))
                        let multiplexer = try pipeline.configureHTTP2Pipeline(
                            mode: .client,
                            connectionConfiguration: configuration,
                            streamConfiguration: .init()
                        ) { $0.close() }
                        made.withLock { $0 = multiplexer }
                        try pipeline.addHandler(GoAwayWatch(watch))
                    }
                }
                .connect(host: "127.0.0.1", port: port).get()
            guard let multiplexer = made.withLock({ $0 }) else { throw ChannelError.connectPending }
            return HTTP2Client(channel, multiplexer, goAways: watch)
        }

        func close() { channel.close(promise: nil) }

        /// The fields of a request's head.
        static func head(_ method: String, _ path: String, _ fields: [(String, String)] = []) -> HPACKHeaders {
            HPACKHeaders(
                [(":method", method), (":scheme", "https"), (":authority", "proxy.example"), (":path", path)] + fields
            )
        }

        /// Opens a stream.
        ///
        /// - Parameter reads: whether it takes what comes by itself.
        func open(reads: Bool = true) async throws -> (stream: any Channel, answer: EventLoopFuture<Answer>) {
            let promise = channel.eventLoop.makePromise(of: Answer.self)
            let stream = channel.eventLoop.makePromise(of: (any Channel).self)
            multiplexer.createStreamChannel(promise: stream) { stream in
                stream.eventLoop.makeCompletedFuture {
                    if !reads { try stream.syncOptions?.setOption(.autoRead, value: false) }
                    try stream.pipeline.syncOperations.addHandler(StreamCollector(promise))
                }
            }
            do {
                return (try await stream.futureResult.get(), promise.futureResult)
            } catch {
                // On a connection that is gone nobody else answers it.
                promise.fail(error)
                throw error
            }
        }

        /// Asks, and waits for the answer.
        ///
        /// - Parameters:
        ///   - body: pieces of content; nil: none.
        ///   - trailers: behind it.
        func ask(
            _ head: HPACKHeaders,
            body: [String]? = nil,
            trailers: HPACKHeaders? = nil
        ) async throws -> Answer {
            let (stream, answer) = try await open()
            typealias Frame = HTTP2Frame.FramePayload
            let sent = channel.eventLoop.makePromise(of: Void.self)
            // What the client itself refuses to send is not answered.
            sent.futureResult.whenFailure { _ in stream.close(promise: nil) }
            stream.write(Frame.headers(.init(headers: head, endStream: body == nil && trailers == nil)), promise: sent)
            for (index, piece) in (body ?? []).enumerated() {
                let isLast = trailers == nil && index + 1 == body?.count
                let data = Frame.Data(data: .byteBuffer(ByteBuffer(string: piece)), endStream: isLast)
                stream.write(Frame.data(data), promise: nil)
            }
            if let trailers { stream.write(Frame.headers(.init(headers: trailers, endStream: true)), promise: nil) }
            stream.flush()
            return try await answer.get()
        }

        func get(_ path: String, _ fields: [(String, String)] = []) async throws -> Answer {
            try await ask(HTTP2Client.head("GET", path, fields))
        }
    }

    private final class GoAwayWatch: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame

        private let watch: CountWatch

        init(_ watch: CountWatch) {
            self.watch = watch
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .goAway = unwrapInboundIn(data).payload { watch.increment() }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    private final class StreamCollector: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload

        private let promise: EventLoopPromise<HTTP2Client.Answer>
        private var answer = HTTP2Client.Answer()

        init(_ promise: EventLoopPromise<HTTP2Client.Answer>) {
            self.promise = promise
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .headers(let frame):
                answer.heads.append(frame.headers)
                answer.isWhole = frame.endStream
            case .data(let frame):
                if case .byteBuffer(let buffer) = frame.data { answer.body += buffer.readableBytesView }
                answer.isWhole = frame.endStream
            case .rstStream(let code): answer.reset = code
            default: break
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if let closed = error as? NIOHTTP2Errors.StreamClosed { answer.reset = closed.errorCode }
        }

        func channelInactive(context: ChannelHandlerContext) {
            promise.succeed(answer)
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            promise.succeed(answer)
        }
    }
#endif
