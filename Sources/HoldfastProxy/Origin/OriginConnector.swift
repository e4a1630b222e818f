// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastStorage
    internal import NIOCore
    internal import NIOPosix
    internal import NIOSSL
    internal import NIOTLS
    private import Synchronization

    /// Opens connections: name resolution, TCP to the first address that responds (RFC 8305), and TLS.
    enum OriginConnector {
        /// The connection, TLS included, was not ready in time.
        struct TimedOut: Error {}

        /// Opens a connection.
        ///
        /// - Parameters:
        ///   - loop: the event loop of the connection.
        ///   - tls: the TLS context; nil: no TLS.
        ///   - timeout: for all of it.
        ///   - end: interrupts it; a connection that opens later is closed.
        static func connect(
            _ key: OriginKey,
            on loop: any EventLoop,
            tls: NIOSSLContext?,
            timeout: TimeAmount,
            end: AttemptEnd
        ) async throws -> ByteChannel {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = Outcome(continuation)
                end.whenEnded { outcome.resume(.failure(AttemptEnd.BrokenOff())) }
                let timer = loop.scheduleTask(in: timeout) { outcome.resume(.failure(TimedOut())) }
                bootstrap(key, on: loop, tls: tls, timeout: timeout)
                    .connect(host: key.host, port: key.port)
                    .flatMap { channel in established(channel, for: outcome) }
                    .whenComplete { result in
                        timer.cancel()
                        outcome.resume(result)
                    }
            }
        }

        private static func bootstrap(
            _ key: OriginKey,
            on loop: any EventLoop,
            tls: NIOSSLContext?,
            timeout: TimeAmount
        ) -> ClientBootstrap {
            // An IP address is not a name, so there is no SNI for it; the certificate must then contain the address (RFC 6066 §3).
            let isAddress = (try? SocketAddress(ipAddress: key.host, port: key.port)) != nil
            let name = isAddress ? nil : key.host
            return ClientBootstrap(group: loop)
                .connectTimeout(timeout)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        // Only now: many calls may wait for the name's addresses before they take a descriptor.
                        guard !SpareDescriptors.areNext else {
                            throw IOError(errnoCode: SpareDescriptors.errorNumber, reason: "connect")
                        }
                        let pipeline = channel.pipeline.syncOperations
                        if let tls {
                            try pipeline.addHandler(PromptClose())
                            try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                        }
                        let handshake = channel.eventLoop.makePromise(of: Void.self)
                        if tls == nil { handshake.succeed(()) }
                        // Before the end of the pipeline, which does not pass errors on.
                        let setup = ConnectionSetup(handshake)
                        try pipeline.addHandler(setup)
                        let bytes = try ByteChannel.attach(to: channel)
                        setup.bytes = bytes
                    }
                }
        }

        /// The bytes of a channel once its handshake is over; on the channel's loop.
        private static func established(_ channel: any Channel, for outcome: Outcome) -> EventLoopFuture<ByteChannel> {
            do {
                let setup = try channel.pipeline.syncOperations.handler(type: ConnectionSetup.self)
                guard let bytes = setup.bytes else { throw ChannelError.ioOnClosedChannel }
                outcome.hold(bytes)
                return setup.handshake.futureResult
                    .map { bytes }
                    .flatMapErrorThrowing { error in
                        bytes.close()
                        throw error
                    }
            } catch {
                channel.close(promise: nil)
                return channel.eventLoop.makeFailedFuture(error)
            }
        }
    }

    /// Observes the end of the handshake, and its errors.
    private final class ConnectionSetup: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        let handshake: EventLoopPromise<Void>
        var bytes: ByteChannel?

        init(_ handshake: EventLoopPromise<Void>) {
            self.handshake = handshake
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted = event as? TLSUserEvent { handshake.succeed(()) }
            context.fireUserInboundEventTriggered(event)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            handshake.fail(error)
            context.fireErrorCaught(error)
        }

        func channelInactive(context: ChannelHandlerContext) {
            handshake.fail(ChannelError.eof)
            context.fireChannelInactive()
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            handshake.fail(ChannelError.eof)
        }
    }

    /// Closes a connection as soon as TLS has sent its close_notify.
    ///
    /// Otherwise it would wait for the peer's for seconds, and no one reads any more: a peer that keeps sending would
    /// hold the connection that long.
    final class PromptClose: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        /// Follows a close: TLS has then sent its close_notify, just now or when its output was closed.
        struct Now: Sendable {}

        func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
            guard event is Now else { return context.triggerUserOutboundEvent(event, promise: promise) }
            context.close(promise: promise)
        }
    }

    extension Channel {
        /// Closes, over TLS too, without waiting for the peer; on any thread.
        func closePromptly() {
            close(mode: .all, promise: nil)
            triggerUserOutboundEvent(PromptClose.Now(), promise: nil)
        }
    }

    /// Resumes one continuation with the first of several results; a connection that nobody waits for any more is closed.
    private final class Outcome: Sendable {
        private struct State {
            var continuation: CheckedContinuation<ByteChannel, any Error>?
            /// The connection whose handshake is in progress.
            var opening: ByteChannel?
        }

        private let state: Mutex<State>

        init(_ continuation: CheckedContinuation<ByteChannel, any Error>) {
            state = Mutex(State(continuation: continuation))
        }

        /// Notes the connection whose handshake begins: the handshake itself has no time limit.
        func hold(_ bytes: ByteChannel) {
            let isAwaited = state.withLock { state in
                if state.continuation != nil { state.opening = bytes }
                return state.continuation != nil
            }
            if !isAwaited { bytes.close() }
        }

        func resume(_ result: Result<ByteChannel, any Error>) {
            let former = state.withLock { state in
                defer { state = State() }
                return state
            }
            switch result {
            case .success(let made): if former.continuation == nil { made.close() }
            case .failure: former.opening?.close()
            }
            former.continuation?.resume(with: result)
        }
    }
#endif
