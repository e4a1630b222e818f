// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    internal import Foundation
    public import Holdfast
    public import HoldfastSemantics
    internal import Logging
    public import NIOCore
    internal import NIOHTTP1

    #if canImport(FoundationNetworking)
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    /// Sends requests through AsyncHTTPClient, over HTTP/1.1 and HTTP/2.
    ///
    /// Both bodies are streamed with back-pressure: content is read when the connection takes more, and a server is held back
    /// while its response is not read. The response is handed up at its head. Field lines keep their order, case and number.
    /// What a file or an `httpBodyStream` holds is read off the cooperative pool.
    ///
    /// Redirects are handed up, and so left to the pipeline: for a client that would follow them itself, one of the transport's own
    /// with the same configuration sends.
    ///
    /// The client swallows interim (1xx) responses, cannot be asked for a new connection, and ignores the request's
    /// `timeoutInterval`; deadlines come from the pipeline. More stands in `docs/clients/async-http-client.md`.
    public final class AsyncHTTPClientTransport: Transport {
        /// The name of the event that tells of a redirect which the client itself followed beneath the pipeline: only where its
        /// configuration could not be read. Such a response bears the last URL and is stored by no cache.
        public static let clientFollowedRedirect = ServiceEvent.Name("client-followed-redirect")

        private let client: HTTPClient
        private let isOwn: Bool
        /// Whether the client, which is the transport's own, stands in for somebody's.
        private let standsIn: Bool
        let traits: ClientTraits
        private let known = KnownConnections()

        /// A transport over somebody's client, used as it is: neither reconfigured nor shut down.
        ///
        /// A client that follows redirects, as `HTTPClient.shared` does, is not used itself, since it ends the process where it is led
        /// to a port above 65535, and keeps no credential field of your own to its origin. A client of the transport's own with
        /// the same configuration and event loops sends in its place, with redirects `.disallow` and connections of its own. It
        /// lives as long as the transport and the bodies of its responses.
        ///
        /// - Parameters:
        ///   - client: must not be shut down while calls are under way, nor its event loops.
        ///   - undoesContentCoding: whether the client was configured with `decompression: .enabled`; nil, the default, finds
        ///     out by itself. Where that fails, coded responses are handed up but stored by no cache.
        public init(client: HTTPClient, undoesContentCoding: Bool? = nil) {
            traits = undoesContentCoding.map { ClientTraits(undoesCodings: $0) } ?? ClientTraits(of: client)
            if var configuration = ClientTraits.configuration(of: client), !ClientTraits.handsUpRedirects(configuration)
            {
                configuration.redirectConfiguration = .disallow
                configuration.refuseStatusesBelow100()
                self.client = HTTPClient(eventLoopGroup: client.eventLoopGroup, configuration: configuration)
                (isOwn, standsIn) = (true, true)
            } else {
                self.client = client
                (isOwn, standsIn) = (false, false)
            }
        }

        /// A transport over a client whose redirects could not be looked at.
        init(unread client: HTTPClient) {
            self.client = client
            (isOwn, standsIn) = (false, false)
            traits = ClientTraits(undoesCodings: nil)
        }

        /// A transport with a client of its own, which ``shutdown()`` ends.
        ///
        /// - Parameters:
        ///   - configuration: TLS, proxy, timeouts, decompression (off by default) and the rest. Its redirects are set to
        ///     `.disallow` and `connectionPool.retryConnectionEstablishment` to false, since both are the pipeline's to judge.
        ///   - group: where it runs; the client's default, shared by the process, if nil.
        public init(
            configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
            eventLoopGroup group: (any EventLoopGroup)? = nil
        ) {
            var own = configuration
            own.redirectConfiguration = .disallow
            own.connectionPool.retryConnectionEstablishment = false
            own.refuseStatusesBelow100()
            client = HTTPClient(eventLoopGroup: group ?? HTTPClient.defaultEventLoopGroup, configuration: own)
            isOwn = true
            standsIn = false
            traits = ClientTraits(own)
        }

        deinit {
            guard isOwn else { return }
            // The client stops the process when it is dropped before it was shut down.
            let client = client
            Task { try? await client.shutdown() }
        }

        /// Ends a client of the transport's own, and what is under way with it; without effect on somebody's client.
        ///
        /// A transport that is dropped does so in the background, once no body of its responses is left; this waits until it is
        /// done. Calls afterwards fail with `.unsupported`.
        ///
        /// - Throws: what the client throws; a second call does nothing.
        public func shutdown() async throws {
            guard isOwn, !standsIn else { return }
            do {
                try await client.shutdown()
            } catch let error as HTTPClientError where error == .alreadyShutdown {
                return
            }
        }

        public var enforcesDeadline: Bool { true }

        /// The Accept-Encoding that a client with decompression adds; nothing else that a cache would judge by.
        public func implicitFields(for request: URLRequest) -> HeaderFields {
            guard let added = traits.acceptEncoding(for: request) else { return HeaderFields() }
            return ["Accept-Encoding": added.value]
        }

        public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            try Task.checkCancellation()
            if let deadline = context.attemptDeadline, context.clock.now >= deadline {
                throw ClientFailure.timeout(ExchangeTrace(progress: .notSent))
            }
            let upload = try await Upload(body, of: request, loops: client.eventLoopGroup)
            let watch = ConnectionWatch(known)
            let call = context.options.transportDetails as? ClientCall
            let outgoing = try clientRequest(for: request, upload, call)
            // A second copy of what is in the trace would be read too early: it is taken when something fails.
            let isHTTP1 = request.url?.scheme?.lowercased() == "http"
            let known = known
            let trace: @Sendable () -> ExchangeTrace = {
                ExchangeTrace(
                    progress: upload.progress,
                    wasNeverPlaced: isHTTP1 && known.tells && !watch.isPlaced,
                    connectionReused: watch.isReused,
                    uploadFailure: upload.failure
                )
            }
            let answer: HTTPClientResponse
            do {
                answer = try await execute(outgoing, watch.logger(over: call?.logger), context)
            } catch {
                let reason: any Error =
                    if Task.isCancelled {
                        CancellationError()
                    } else if let error = error as? ServiceError, error.code == .timeout, upload.failure == nil {
                        ClientFailure.timeout(trace())
                    } else {
                        ClientFailure.serviceError(for: error, trace())
                    }
                upload.cancel()
                throw reason
            }
            if isHTTP1 { known.noteResponse(wasPlaced: watch.isPlaced) }
            call?.note(answer.version)
            return response(answer, to: request, upload, trace, context)
        }

        private func clientRequest(
            for request: URLRequest,
            _ upload: Upload,
            _ call: ClientCall?
        ) throws -> HTTPClientRequest {
            var outgoing = try HTTPClientRequest(request)
            if let added = traits.acceptEncoding(for: request), !added.isAddedByClient {
                outgoing.headers.add(name: "Accept-Encoding", value: added.value)
            }
            outgoing.removeTraceFields(of: client)
            // Also where there is no content: a client that follows redirects leaves those alone whose request it could not
            // send again, and of a stream it knows that it cannot.
            outgoing.body = .stream(upload, length: upload.length.map { .known(Int64($0)) } ?? .unknown)
            outgoing.tlsConfiguration = call?.tlsConfiguration
            outgoing.localAddress = call?.localAddress
            try checkSize(of: outgoing, hasContent: upload.length != 0)
            return outgoing
        }

        /// Refuses a head with content that would fill a connection's buffer: the client ends the process where the head makes the
        /// connection unwritable for a moment (seen with 1.37), and a redirect may bring such a URL.
        private func checkSize(of request: HTTPClientRequest, hasContent: Bool) throws {
            guard hasContent else { return }
            let size = request.headers.reduce(request.url.utf8.count) {
                $0 + $1.name.utf8.count + $1.value.utf8.count + 4
            }
            guard size > AsyncHTTPClientTransport.mostHeadBytes else { return }
            throw ServiceError(
                .badRequest,
                "The request's URL and fields are \(size) bytes, more than the \(AsyncHTTPClientTransport.mostHeadBytes) that "
                    + "AsyncHTTPClient can send before content; shorten them.",
                progress: .notSent
            )
        }

        /// Three quarters of the buffer that a connection of SwiftNIO has by default.
        private static let mostHeadBytes = 48 << 10

        /// Lets the client send, no longer than until the attempt's deadline.
        private func execute(
            _ request: HTTPClientRequest,
            _ logger: Logger,
            _ context: CallContext
        ) async throws -> HTTPClientResponse {
            guard let deadline = context.attemptDeadline else {
                return try await client.execute(request, deadline: .distantFuture, logger: logger)
            }
            let left = context.clock.now.duration(to: deadline).timeAmount
            if context.clock is SystemClock {
                return try await client.execute(request, deadline: .now() + left, logger: logger)
            }
            let client = client
            return try await withDeadline(deadline, on: context.clock, discard: { _ in }) {
                try await client.execute(request, deadline: .distantFuture, logger: logger)
            }
        }
    }
#endif
