// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    public import Holdfast
    public import HoldfastSemantics
    internal import Logging
    public import NIOCore
    internal import NIOHTTP1
    internal import NIOSSL

    #if canImport(FoundationNetworking)
        internal import Foundation
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    /// Sends requests through AsyncHTTPClient, over HTTP/1.1 and HTTP/2.
    ///
    /// Both bodies are streamed with back-pressure: content is read when the connection accepts more, and a server is slowed
    /// down while its response is not read. The response is returned as soon as its head arrives. Field lines keep their order,
    /// case and number. Files and `httpBodyStream` content are read outside the cooperative pool.
    ///
    /// Redirects are left to the pipeline: instead of a client that would follow them, the transport uses its own client with
    /// the same configuration.
    ///
    /// The client ignores interim (1xx) responses and the request's `timeoutInterval`, and cannot be asked for a new
    /// connection; deadlines come from the pipeline. See `docs/clients/async-http-client.md`.
    public final class AsyncHTTPClientTransport: Transport {
        /// The name of the event for a redirect that the client followed itself, below the pipeline; this happens only if its
        /// configuration could not be read. Such a response has the last URL and is not stored by any cache.
        public static let clientFollowedRedirect = ServiceEvent.Name("client-followed-redirect")

        let client: HTTPClient
        private let isOwn: Bool
        /// Whether the transport's own client replaces the given one.
        private let standsIn: Bool
        let traits: ClientTraits
        private let known = KnownConnections()

        /// Creates a transport over an existing client, which is neither reconfigured nor shut down.
        ///
        /// A client that follows redirects, as `HTTPClient.shared` does, is not used itself: it stops the process if a redirect
        /// leads to a port above 65535, and does not keep your own credential fields to their origin. The transport then uses
        /// its own client with the same configuration and event loops, but with redirects `.disallow` and its own connections.
        /// It lives as long as the transport and the bodies of its responses.
        ///
        /// - Parameters:
        ///   - client: must not be shut down while calls are in progress, nor may its event loops.
        ///   - undoesContentCoding: whether the client was configured with `decompression: .enabled`; nil, the default:
        ///     detected. If that fails, coded responses are returned but not stored by any cache.
        public init(client: HTTPClient, undoesContentCoding: Bool? = nil) {
            traits = undoesContentCoding.map { ClientTraits(undoesCodings: $0) } ?? ClientTraits(of: client)
            if var configuration = ClientTraits.configuration(of: client), !ClientTraits.returnsRedirects(configuration)
            {
                configuration.redirectConfiguration = .disallow
                configuration.refuseOddStatuses()
                self.client = HTTPClient(eventLoopGroup: client.eventLoopGroup, configuration: configuration)
                (isOwn, standsIn) = (true, true)
            } else {
                self.client = client
                (isOwn, standsIn) = (false, false)
            }
        }

        /// A transport over a client whose redirect setting could not be read.
        init(unread client: HTTPClient) {
            self.client = client
            (isOwn, standsIn) = (false, false)
            traits = ClientTraits(undoesCodings: nil)
        }

        /// Creates a transport with its own client, which ``shutdown()`` ends.
        ///
        /// - Parameters:
        ///   - configuration: TLS, proxy, timeouts, decompression (off by default) and the rest. Its redirects are set to
        ///     `.disallow` and `connectionPool.retryConnectionEstablishment` to false, because the pipeline decides about both.
        ///     The client makes spans, which show the query, only if `tracing.tracer` has another type than the bootstrapped
        ///     tracer, which is in every configuration.
        ///   - group: the event loops; the client's default, shared by the process, if nil.
        public init(
            configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
            eventLoopGroup group: (any EventLoopGroup)? = nil
        ) {
            var own = configuration
            own.redirectConfiguration = .disallow
            own.connectionPool.retryConnectionEstablishment = false
            own.removeDefaultTracer()
            own.refuseOddStatuses()
            client = HTTPClient(eventLoopGroup: group ?? HTTPClient.defaultEventLoopGroup, configuration: own)
            isOwn = true
            standsIn = false
            traits = ClientTraits(own)
        }

        deinit {
            guard isOwn else { return }
            // The client stops the process if it is released before it was shut down.
            let client = client
            Task { try? await client.shutdown() }
        }

        /// Ends the transport's own client and its exchanges; does nothing with an existing client.
        ///
        /// Releasing a transport does the same in the background, once no body of its responses is left; this method waits
        /// until it is done. Later calls fail with `.unsupported`.
        ///
        /// - Throws: the client's errors; a second call does nothing.
        public func shutdown() async throws {
            guard isOwn, !standsIn else { return }
            do {
                try await client.shutdown()
            } catch let error as HTTPClientError where error == .alreadyShutdown {
                return
            }
        }

        public var enforcesDeadline: Bool { true }

        /// The Accept-Encoding that a client with decompression adds; it adds nothing else that matters to a cache.
        public func implicitFields(for request: URLRequest) -> HeaderFields {
            guard let added = traits.acceptEncoding(for: request) else { return HeaderFields() }
            return ["Accept-Encoding": added.value]
        }

        public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            try Task.checkCancellation()
            if let deadline = context.attemptDeadline, context.clock.now >= deadline {
                throw context.attemptTimeout(progress: .notSent)
            }
            let upload = try await Upload(body, of: request, loops: client.eventLoopGroup)
            let watch = ConnectionWatch(known)
            let call = context.options.transportDetails as? ClientCall
            let outgoing = try clientRequest(for: request, upload: upload, call: call, context: context)
            // The trace is read when something fails; an earlier copy would be outdated.
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
                answer = try await execute(outgoing, logger: watch.logger(over: call?.logger), context: context)
            } catch {
                let reason: any Error =
                    if Task.isCancelled {
                        CancellationError()
                    } else if upload.failure == nil, context.attemptDeadline != nil, ClientFailure.isDeadline(error) {
                        ClientFailure.timeout(trace(), in: context)
                    } else {
                        ClientFailure.serviceError(for: error, trace())
                    }
                upload.cancel()
                throw reason
            }
            if isHTTP1 { known.noteResponse(wasPlaced: watch.isPlaced) }
            call?.note(answer.version)
            return response(answer, to: request, upload: upload, trace: trace, context: context)
        }

        private func clientRequest(
            for request: URLRequest,
            upload: Upload,
            call: ClientCall?,
            context: CallContext
        ) throws -> HTTPClientRequest {
            var outgoing = try HTTPClientRequest(request)
            if let added = traits.acceptEncoding(for: request), !added.isAddedByClient {
                outgoing.headers.add(name: "Accept-Encoding", value: added.value)
            }
            outgoing.removeTraceFields(of: client)
            // Also without content: a client that follows redirects does not follow them for requests that it cannot send
            // again, such as those with a stream.
            outgoing.body = .stream(upload, length: upload.length.map { .known(Int64($0)) } ?? .unknown)
            outgoing.tlsConfiguration = call?.tlsConfiguration
            // A client certificate is a credential, which stays at the origin where the call began.
            if context.isForeignHop { outgoing.tlsConfiguration?.removeIdentity() }
            outgoing.localAddress = call?.localAddress
            try checkSize(of: outgoing, hasContent: upload.length != 0)
            return outgoing
        }

        /// Rejects a head that, followed by content, would fill a connection's buffer: the client stops the process if the head
        /// makes the connection unwritable for a moment (seen with 1.37), and a redirect may bring such a URL.
        private func checkSize(of request: HTTPClientRequest, hasContent: Bool) throws {
            guard hasContent else { return }
            let size = request.headers.reduce(request.url.utf8.count) {
                $0 + $1.name.utf8.count + $1.value.utf8.count + 4
            }
            guard size > AsyncHTTPClientTransport.mostHeadBytes else { return }
            throw ServiceError(
                .badRequest,
                "The request's URL and fields are \(size) bytes, which is more than the "
                    + "\(AsyncHTTPClientTransport.mostHeadBytes) that AsyncHTTPClient can send before content. Shorten them.",
                progress: .notSent
            )
        }

        /// Three quarters of the default buffer of a SwiftNIO connection.
        private static let mostHeadBytes = 48 << 10

        /// Lets the client send, at most until the attempt's deadline.
        private func execute(
            _ request: HTTPClientRequest,
            logger: Logger,
            context: CallContext
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

    extension AsyncHTTPClientTransport {
        /// The client's response as a pipeline's response.
        func response(
            _ answer: HTTPClientResponse,
            to request: URLRequest,
            upload: Upload,
            trace: @escaping @Sendable () -> ExchangeTrace,
            context: CallContext
        ) -> Response {
            var fields = HeaderFields()
            for (name, value) in answer.headers { fields.append(rawName: name, value: value) }
            let head = ResponseHead(status: StatusCode(rawValue: Int(answer.status.code)), fields: fields)
            let coding = traits.coding(of: fields)
            var response = Response(
                status: head.status,
                fields: fields,
                body: body(of: answer, head: head, to: request, coding: coding, upload: upload, trace: trace),
                url: answer.url ?? request.url,
                contentDecoded: coding == .undone
            )
            if coding == .uncertain { response.presentation = .hidden }
            if answer.history.count > 1 {
                response.presentation = .hidden
                context.emit(AsyncHTTPClientTransport.clientFollowedRedirect) { event in
                    event.attempt = context.attempt
                    event.status = head.status
                    event.detail =
                        "The HTTPClient followed \(answer.history.count - 1) redirects by itself, so the "
                        + "response is not stored; configure it with redirects `.disallow`."
                }
            }
            return response
        }

        private func body(
            of answer: HTTPClientResponse,
            head: ResponseHead,
            to request: URLRequest,
            coding: ClientTraits.Coding,
            upload: Upload,
            trace: @escaping @Sendable () -> ExchangeTrace
        ) -> ResponseBody {
            let isFramed = !head.fields.contains("Transfer-Encoding")
            let length = isFramed && coding == .kept ? head.contentLength : nil
            let isFinal = head.status.rawValue >= 300
            let source = PulledBytes(
                answer.body,
                failure: { error, delivered in
                    var trace = trace()
                    trace.progress = delivered > 0 ? .bytesReceived : .headReceived
                    trace.wasNeverPlaced = false
                    var failure = ClientFailure.serviceError(for: error, trace)
                    if failure.message == FailureMeaning.connectionLost.message {
                        failure.message = FailureMeaning.brokenBody(received: delivered, of: length).message
                    }
                    return failure
                },
                onEnd: { [transport = self] isWhole in
                    // Releasing the transport ends its client, and this body with it.
                    withExtendedLifetime(transport) {}
                    // After such a response the client neither sends nor requests more content.
                    if !isWhole || isFinal { upload.cancel() }
                }
            )
            let isEmpty =
                request.httpMethod == "HEAD" || head.status == 204 || head.status == 304 || isFramed && length == 0
            guard isEmpty else { return ResponseBody(source, length: length) }
            // The end must be read from the client, or it gives up the connection.
            Task { _ = try? await source.next() }
            return ResponseBody()
        }
    }

    extension TLSConfiguration {
        /// Removes everything that says who the client is; the rules for the server stay.
        fileprivate mutating func removeIdentity() {
            certificateChain = []
            privateKey = nil
            sslContextCallback = nil
            pskClientProvider = nil
        }
    }
#endif
