// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOHPACK
    internal import NIOHTTP2
    internal import Synchronization

    /// A TLS connection before the handshake has selected its HTTP version.
    final class SecureConnection: ServedConnection {
        private let channel: any Channel
        private let state = Mutex(
            (served: (any ServedConnection)?.none, isDraining: false, timer: Scheduled<Void>?.none)
        )

        /// - Parameter timeout: the time limit of the handshake.
        init(_ channel: any Channel, timeout: TimeAmount) {
            self.channel = channel
            let timer = channel.eventLoop.scheduleTask(in: timeout) { [weak channel] () -> Void in
                channel?.close(promise: nil)
            }
            state.withLock { $0.timer = timer }
            channel.closeFuture.whenComplete { _ in timer.cancel() }
        }

        /// Continues the connection as another one after the handshake.
        func become(_ connection: any ServedConnection) {
            let (isDraining, timer) = state.withLock { state in
                state.served = connection
                return (state.isDraining, state.timer)
            }
            timer?.cancel()
            if isDraining { connection.closeIfIdle() }
        }

        func closeIfIdle() {
            let served = state.withLock { state in
                state.isDraining = true
                return state.served
            }
            if let served { served.closeIfIdle() } else { channel.close(promise: nil) }
        }

        func cut() {
            if let served = state.withLock({ $0.served }) { served.cut() } else { channel.close(promise: nil) }
        }

        var isWaiting: Bool { state.withLock { $0.served }?.isWaiting ?? true }
    }

    /// A connection that uses HTTP/2 (RFC 9113); each of its streams is a request.
    ///
    /// SwiftNIO closes connections that send too many resets, control frames, empty frames or errors.
    final class HTTP2Connection: ServedConnection {
        private struct State {
            /// The number of open streams.
            var streams = 0
            var isEnding = false
            var tasks: [ObjectIdentifier: Task<Void, Never>] = [:]
            /// Closes the connection if no stream is opened.
            var timer: Scheduled<Void>?
        }

        /// The time a client has to close a connection that is ending.
        private static let endTimeout = TimeAmount.seconds(5)

        private let channel: any Channel
        private let counters: ServerCounters
        private let state = Mutex(State())

        init(_ channel: any Channel, counters: ServerCounters) {
            self.channel = channel
            self.counters = counters
        }

        /// The largest payload of a frame that clients may send (RFC 9113 §6.5.2).
        private static let frameSize = 16_384
        /// By how much a head may exceed the limits and still get a 431 on its stream.
        private static let readableExcess = 192 << 10

        /// The largest head that SwiftNIO reads, as HPACK counts: 32 bytes more for each field (RFC 7541 §4.1).
        ///
        /// A larger one ends the connection, because the state of its compression is lost. So more is read than is
        /// allowed, and the rules for HTTP/1.1 refuse the rest.
        private static func readableHead(_ configuration: ServerConfiguration) -> Int {
            configuration.headLimits.bytes + 32 * configuration.headLimits.fieldLines + readableExcess
        }

        /// Serves the connection until it closes; call it on its event loop.
        func serve(
            _ configuration: ServerConfiguration,
            handler: any ClientHandler,
            on executor: EventLoopExecutor
        ) throws {
            var connection = NIOHTTP2Handler.ConnectionConfiguration()
            connection.initialSettings = [
                HTTP2Setting(parameter: .maxConcurrentStreams, value: configuration.maximumStreams),
                HTTP2Setting(parameter: .maxHeaderListSize, value: HTTP2Connection.readableHead(configuration)),
            ]
            connection.maximumSequentialContinuationFrames =
                HTTP2Connection.readableHead(configuration) / HTTP2Connection.frameSize + 4
            connection.maximumBufferedControlFrames = 1_000
            var stream = NIOHTTP2Handler.StreamConfiguration()
            stream.outboundBufferSizeHighWatermark = 64 << 10
            stream.outboundBufferSizeLowWatermark = 32 << 10
            let management = NIOHTTP2ServerConnectionManagementHandler(
                eventLoop: channel.eventLoop,
                // Idle connections are closed here, even if the client sends pings.
                configuration: .init(maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil)
            )
            try channel.pipeline.syncOperations.addHandler(EarlySettings())
            _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
                mode: .server,
                connectionConfiguration: connection,
                streamConfiguration: stream,
                streamDelegate: management.http2StreamDelegate
            ) { [self, address = channel.remoteAddress] stream in
                stream.eventLoop.makeCompletedFuture {
                    let bytes = try StreamBytes.attach(to: stream) { [self] bytes, head, hasEnded in
                        let service = StreamService(
                            channel: bytes,
                            address: address,
                            configuration: configuration,
                            handler: handler,
                            counters: counters
                        )
                        begin(bytes, on: executor) { await service.answer(head, hasEnded: hasEnded) }
                    }
                    opened(bytes, idle: configuration.idleTimeout)
                }
            }
            try channel.pipeline.syncOperations.addHandlers(management, ConnectionEnd())
            closeUnlessUsed(within: configuration.headTimeout)
            channel.closeFuture.whenComplete { [self] _ in
                let (timer, tasks) = state.withLock { ($0.timer, $0.tasks.values) }
                timer?.cancel()
                for task in tasks { task.cancel() }
            }
        }

        func closeIfIdle() {
            let work = { @Sendable [self] in
                let isIdle = state.withLock { state in
                    state.isEnding = true
                    return state.streams == 0
                }
                // Open streams are still answered, but no new ones (RFC 9113 §6.8).
                channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
                if isIdle { closeUnlessUsed(within: HTTP2Connection.endTimeout) }
            }
            if channel.eventLoop.inEventLoop { work() } else { channel.eventLoop.execute(work) }
        }

        var isWaiting: Bool { state.withLock { $0.streams == 0 } }

        func cut() {
            for task in state.withLock({ Array($0.tasks.values) }) { task.cancel() }
            channel.closePromptly()
        }

        private func opened(_ stream: ByteChannel, idle: TimeAmount) {
            let timer = state.withLock { state in
                state.streams += 1
                defer { state.timer = nil }
                return state.timer
            }
            timer?.cancel()
            stream.closeFuture.whenComplete { [self] _ in
                let (task, isLast, isEnding) = state.withLock { state in
                    state.streams -= 1
                    return (
                        state.tasks.removeValue(forKey: ObjectIdentifier(stream)), state.streams == 0, state.isEnding
                    )
                }
                task?.cancel()
                if isLast { closeUnlessUsed(within: isEnding ? HTTP2Connection.endTimeout : idle) }
            }
        }

        private func begin(
            _ stream: ByteChannel,
            on executor: EventLoopExecutor,
            _ work: @escaping @Sendable () async -> Void
        ) {
            // The task cannot begin before this returns, because both run on the same event loop.
            let task = Task(executorPreference: executor, operation: work)
            state.withLock { $0.tasks[ObjectIdentifier(stream)] = task }
        }

        /// Closes the connection if no stream is opened; the client is told first and has some time to close it.
        private func closeUnlessUsed(within limit: TimeAmount) {
            guard channel.isActive else { return }
            let timer = channel.eventLoop.scheduleTask(in: limit) { [weak self] () -> Void in
                guard let self else { return }
                let (isUsed, isEnding) = state.withLock { ($0.streams > 0, $0.isEnding) }
                if isUsed { return }
                if isEnding { channel.closePromptly() } else { closeIfIdle() }
            }
            let former = state.withLock { state in
                defer { state.timer = timer }
                return state.timer
            }
            former?.cancel()
        }
    }

    /// The end of an HTTP/2 connection's pipeline; an error of the connection closes it.
    private final class ConnectionEnd: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // A stream's own error was already reported on that stream, and too many of them close the connection.
            if !ConnectionEnd.isOfStream(error) { context.channel.closePromptly() }
        }

        /// Whether an error belongs to one request, whose stream SwiftNIO resets; the other streams of the connection
        /// continue.
        private static func isOfStream(_ error: any Error) -> Bool {
            switch error {
            case is NIOHTTP2Errors.StreamError, is NIOHTTP2Errors.ContentLengthViolated,
                is NIOHTTP2Errors.ContentLengthHeadersMismatch, is NIOHTTP2Errors.ContentLengthHeaderNegative,
                is NIOHTTP2Errors.ContentLengthHeaderMalformedValue, is NIOHTTP2Errors.MissingPseudoHeader,
                is NIOHTTP2Errors.DuplicatePseudoHeader, is NIOHTTP2Errors.PseudoHeaderAfterRegularHeader,
                is NIOHTTP2Errors.UnknownPseudoHeader, is NIOHTTP2Errors.UnsupportedPseudoHeader,
                is NIOHTTP2Errors.InvalidPseudoHeaders, is NIOHTTP2Errors.InvalidPseudoHeaderValue,
                is NIOHTTP2Errors.MissingHostHeader, is NIOHTTP2Errors.DuplicateHostHeader,
                is NIOHTTP2Errors.EmptyPathHeader, is NIOHTTP2Errors.TrailersWithoutEndStream,
                is NIOHTTP2Errors.InvalidHTTP2HeaderFieldName, is NIOHTTP2Errors.InvalidHTTP2HeaderFieldValue,
                is NIOHTTP2Errors.ForbiddenHeaderField:
                true
            default: false
            }
        }
    }

    /// Converts between an HTTP/2 stream and bytes: passes on the content of DATA frames, and writes bytes as DATA
    /// frames.
    final class StreamBytes: ChannelDuplexHandler {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias InboundOut = ByteBuffer
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = HTTP2Frame.FramePayload

        typealias Begin = (_ bytes: ByteChannel, _ head: HPACKHeaders, _ hasEnded: Bool) -> Void

        /// A head to write; an event that keeps its order among the written bytes.
        struct Head: Sendable {
            let fields: HPACKHeaders
            let isInterim: Bool
            let endsStream: Bool
        }

        /// The most interim responses per request.
        private static let interimLimit = 32

        private let begin: Begin
        private var bytes: ByteChannel?
        private var hasBegun = false
        private var hasFinalHead = false
        private var hasEnded = false
        private var hasInputEnded = false
        private var interims = 0
        private let unsent = UnsentBytes()
        private var lastWrite: EventLoopFuture<Void>?

        /// The largest payload of the frames that are written.
        private static let pieceSize = 16_384

        private init(_ begin: @escaping Begin) {
            self.begin = begin
        }

        /// Adds the last handlers of a stream's pipeline; call it on its event loop.
        ///
        /// - Parameter begin: receives the head of the request.
        static func attach(to stream: any Channel, begin: @escaping Begin) throws -> ByteChannel {
            let handler = StreamBytes(begin)
            try stream.pipeline.syncOperations.addHandler(handler)
            let bytes = try ByteChannel.attach(to: stream, isSocket: false, unsent: handler.unsent)
            handler.bytes = bytes
            return bytes
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .headers(let frame):
                if !hasBegun, let bytes {
                    hasBegun = true
                    begin(bytes, frame.headers, frame.endStream)
                }
                // Trailers are dropped, like those of a chunked request.
                if frame.endStream { endInput(context) }
            case .data(let frame):
                if case .byteBuffer(let buffer) = frame.data, buffer.readableBytes > 0 {
                    context.fireChannelRead(wrapInboundOut(buffer))
                }
                if frame.endStream { endInput(context) }
            default: break
            }
        }

        private func endInput(_ context: ChannelHandlerContext) {
            hasInputEnded = true
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            var buffer = unwrapOutboundIn(data)
            if lastWrite == nil, buffer.readableBytes == 0 { promise?.succeed() }
            unsent.add(buffer.readableBytes)
            // In pieces, whose ends show that the client reads.
            while let piece = buffer.readSlice(length: min(Self.pieceSize, buffer.readableBytes)),
                piece.readableBytes > 0
            {
                let count = piece.readableBytes
                let sent = context.eventLoop.makePromise(of: Void.self)
                sent.futureResult.whenComplete { [unsent] _ in unsent.subtract(count) }
                lastWrite = sent.futureResult
                context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(piece)))), promise: sent)
            }
            // An empty write waits for those before it.
            lastWrite?.cascade(to: promise)
        }

        func triggerUserOutboundEvent(
            context: ChannelHandlerContext,
            event: Any,
            promise: EventLoopPromise<Void>?
        ) {
            guard let head = event as? Head else { return context.triggerUserOutboundEvent(event, promise: promise) }
            if head.isInterim { interims += 1 }
            guard !hasFinalHead, !head.isInterim || interims <= StreamBytes.interimLimit else {
                promise?.succeed()
                return
            }
            if !head.isInterim { hasFinalHead = true }
            hasEnded = head.endsStream
            let frame = HTTP2Frame.FramePayload.Headers(headers: head.fields, endStream: head.endsStream)
            context.writeAndFlush(wrapOutboundOut(.headers(frame)), promise: promise)
        }

        /// Closing the output ends the stream; closing everything before both sides have ended resets it.
        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            guard mode == .output else {
                if context.channel.isActive, !hasEnded || !hasInputEnded {
                    // The response is complete and the rest of the request not needed (RFC 9113 §8.1), or the response failed.
                    let code: HTTP2ErrorCode = hasEnded ? .noError : .internalError
                    context.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
                }
                return context.close(mode: mode, promise: promise)
            }
            guard !hasEnded else {
                promise?.succeed()
                return
            }
            hasEnded = true
            let last = HTTP2Frame.FramePayload.Data(data: .byteBuffer(ByteBuffer()), endStream: true)
            context.writeAndFlush(wrapOutboundOut(.data(last)), promise: promise)
        }
    }

    /// Has the settings of an HTTP/2 server apply from the first request on.
    ///
    /// SwiftNIO applies the server's own settings when the client has acknowledged them (RFC 9113 §6.5.3), and until
    /// then reads heads of at most 16 KiB, although nothing limits what a client may send before it knows the settings.
    /// A larger head in a first request would end the connection. Therefore SwiftNIO gets the acknowledgement right
    /// after the client's first SETTINGS frame, and the client's own is dropped when it comes. A client can do nothing
    /// with this that it could not do by acknowledging early itself.
    final class EarlySettings: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        private enum Place {
            /// In the connection preface, before the first frame.
            case preface(remaining: Int)
            /// In the nine bytes before a frame.
            case header
            case payload(remaining: Int)
            /// Everything is passed on.
            case end
        }

        private static let prefaceLength = 24
        private static let headerLength = 9
        private static let settings: UInt8 = 4
        private static let acknowledgement: UInt8 = 1

        private var place = Place.preface(remaining: EarlySettings.prefaceLength)
        private var header = ByteBuffer()
        private var isFirstFrame = true

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .end = place { return context.fireChannelRead(data) }
            var input = unwrapInboundIn(data)
            var output = context.channel.allocator.buffer(capacity: input.readableBytes + EarlySettings.headerLength)
            while input.readableBytes > 0 { move(from: &input, to: &output) }
            if output.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(output)) }
        }

        private func move(from input: inout ByteBuffer, to output: inout ByteBuffer) {
            switch place {
            case .preface(let remaining):
                let count = EarlySettings.copy(from: &input, to: &output, atMost: remaining)
                place = count < remaining ? .preface(remaining: remaining - count) : .header
            case .header:
                let missing = EarlySettings.headerLength - header.readableBytes
                guard EarlySettings.copy(from: &input, to: &header, atMost: missing) == missing else { return }
                begin(header, to: &output)
                header.clear()
            case .payload(let remaining):
                let count = EarlySettings.copy(from: &input, to: &output, atMost: remaining)
                if count < remaining { place = .payload(remaining: remaining - count) } else { endFrame(to: &output) }
            case .end:
                output.writeBuffer(&input)
            }
        }

        /// Passes the header of a frame on, unless it is the client's acknowledgement.
        private func begin(_ header: ByteBuffer, to output: inout ByteBuffer) {
            let bytes = header.readableBytesView
            let length = bytes.prefix(3).reduce(0) { $0 << 8 | Int($1) }
            let (type, flags) = (bytes[bytes.startIndex + 3], bytes[bytes.startIndex + 4])
            let isAcknowledgement =
                type == EarlySettings.settings && flags & EarlySettings.acknowledgement != 0 && length == 0
            if isFirstFrame {
                output.writeImmutableBuffer(header)
                // Anything else is an error, which SwiftNIO handles.
                guard type == EarlySettings.settings, flags & EarlySettings.acknowledgement == 0 else {
                    place = .end
                    return
                }
            } else if isAcknowledgement {
                place = .end
                return
            } else {
                output.writeImmutableBuffer(header)
            }
            place = .payload(remaining: length)
            if length == 0 { endFrame(to: &output) }
        }

        private func endFrame(to output: inout ByteBuffer) {
            if isFirstFrame {
                isFirstFrame = false
                output.writeBytes([0, 0, 0, EarlySettings.settings, EarlySettings.acknowledgement, 0, 0, 0, 0])
            }
            place = .header
        }

        /// Moves bytes; returns how many.
        private static func copy(from input: inout ByteBuffer, to output: inout ByteBuffer, atMost limit: Int) -> Int {
            guard var part = input.readSlice(length: min(limit, input.readableBytes)) else { return 0 }
            return output.writeBuffer(&part)
        }
    }
#endif
