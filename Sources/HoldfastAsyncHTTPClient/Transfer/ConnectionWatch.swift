// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Logging
    internal import NIOCore
    internal import NIOHPACK
    internal import NIOHTTP1
    internal import NIOHTTP2
    private import Synchronization

    /// What the client reports about the connection of an exchange.
    ///
    /// The client has only one way to report it: it puts the connection's number into the metadata of the request's logger
    /// before it writes the head. It does so over HTTP/1.1; over HTTP/2 it reports nothing.
    final class ConnectionWatch: Sendable {
        private struct State {
            var isPlaced = false
            var isReused = false
        }

        private let state = Mutex(State())
        private let known: KnownConnections

        init(_ known: KnownConnections) {
            self.known = known
        }

        /// Whether the request was given to a connection, as far as the client reported.
        var isPlaced: Bool { state.withLock { $0.isPlaced } }

        /// Whether that connection had carried a request of this transport before.
        var isReused: Bool { state.withLock { $0.isReused } }

        /// A logger for one request that reports to this watch, and passes everything on to the caller's logger.
        func logger(over base: Logger?) -> Logger {
            Logger(label: base?.label ?? "holdfast.async-http-client") { _ in
                WatchingLogHandler(watch: self, base: base)
            }
        }

        fileprivate func noteConnection(_ name: String) {
            let isReused = known.insert(name)
            state.withLock { $0 = State(isPlaced: true, isReused: isReused) }
        }
    }

    /// The connections that a transport's requests used; old ones are forgotten.
    final class KnownConnections: Sendable {
        private struct State {
            var current: Set<String> = []
            var earlier: Set<String> = []
            var tells: Bool?
        }

        private static let generationSize = 2048
        private let state = Mutex(State())

        /// Whether responses over HTTP/1.1 have so far been preceded by a connection's name, so that a missing one means
        /// something.
        var tells: Bool { state.withLock { $0.tells ?? false } }

        /// Notes whether the client named the connection of an exchange that succeeded over HTTP/1.1.
        func noteResponse(wasPlaced: Bool) {
            state.withLock { $0.tells = wasPlaced && $0.tells != false }
        }

        /// Adds a connection; true if it was known.
        fileprivate func insert(_ name: String) -> Bool {
            state.withLock { state in
                let isKnown = state.current.contains(name) || state.earlier.contains(name)
                if state.current.count >= KnownConnections.generationSize {
                    state.earlier = state.current
                    state.current = []
                }
                state.current.insert(name)
                return isKnown
            }
        }
    }

    /// Receives the connection's number, and logs only to the caller's own logger.
    private struct WatchingLogHandler: LogHandler {
        private static let connectionKey = "ahc-connection-id"

        let watch: ConnectionWatch
        var base: Logger?
        var metadata: Logger.Metadata = [:]

        var logLevel: Logger.Level {
            get { base?.logLevel ?? .critical }
            set { base?.logLevel = newValue }
        }

        var metadataProvider: Logger.MetadataProvider? {
            get { nil }
            set {}
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set {
                metadata[key] = newValue
                base?[metadataKey: key] = newValue
                if key == WatchingLogHandler.connectionKey, let newValue { watch.noteConnection("\(newValue)") }
            }
        }

        func log(event: LogEvent) {
            base?.log(
                level: event.level,
                event.message,
                error: event.error,
                metadata: event.metadata,
                source: event.source,
                file: event.file,
                function: event.function,
                line: event.line
            )
        }
    }

    extension HTTPClient.Configuration {
        /// Makes exchanges fail if a server answers with a status that no response has: the client takes one below 100 for an
        /// interim response that nothing follows, and over HTTP/2 an interim 101 for the final one, and stops the process (seen
        /// with 1.37).
        mutating func refuseOddStatuses() {
            let further = http1_1ConnectionDebugInitializer
            http1_1ConnectionDebugInitializer = { channel in
                channel.eventLoop.submit {
                    let pipeline = channel.pipeline.syncOperations
                    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                    try pipeline.addHandler(StatusGuard(), position: .after(decoder))
                }.flatMap { further?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
            }
            let furtherOfStreams = http2StreamChannelDebugInitializer
            http2StreamChannelDebugInitializer = { stream in
                // At once, on the stream's loop: if anything happened to the connection before the client has written its
                // request into the stream, it would stop the process.
                stream.eventLoop.makeCompletedFuture {
                    // Before the client's own codec, which a negative status stops.
                    try stream.pipeline.syncOperations.addHandler(StreamStatusGuard(), position: .first)
                }.flatMap { furtherOfStreams?(stream) ?? stream.eventLoop.makeSucceededVoidFuture() }
            }
        }
    }

    /// Lets no response with a status below 100 through.
    private final class StatusGuard: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias InboundOut = HTTPClientResponsePart

        private var hasFailed = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .head(let head) = unwrapInboundIn(data), head.status.code < 100, !hasFailed {
                hasFailed = true
                context.fireErrorCaught(HTTPParserError.invalidStatus)
                context.close(promise: nil)
            }
            if !hasFailed { context.fireChannelRead(data) }
        }
    }

    /// Lets no head over HTTP/2 through whose status is not three digits from 100 on, or is 101, which does not exist there (RFC
    /// 9113 §8.3.2, §8.6).
    private final class StreamStatusGuard: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias InboundOut = HTTP2Frame.FramePayload

        private var hasFailed = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .headers(let frame) = unwrapInboundIn(data), let status = frame.headers.first(name: ":status"),
                !StreamStatusGuard.exists(status), !hasFailed
            {
                hasFailed = true
                context.fireErrorCaught(HTTPParserError.invalidStatus)
                context.close(promise: nil)
            }
            if !hasFailed { context.fireChannelRead(data) }
        }

        private static func exists(_ status: String) -> Bool {
            status.utf8.count == 3 && status.utf8.allSatisfy { (0x30...0x39).contains($0) } && status.first != "0"
                && status != "101"
        }
    }
#endif
