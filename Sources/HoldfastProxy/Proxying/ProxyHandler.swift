// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    internal import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// Answers the requests of clients with a pipeline: converts messages in both directions, and decides nothing about
    /// caching.
    struct ProxyHandler: Sendable {
        /// Looks up, stores, sends and retries.
        let serving: ServingPipeline
        /// Which server a request goes to.
        let targets: TargetRules
        /// The name in Via; nil for none.
        var via: ViaField?
        /// Whether the origin is told the client's address.
        var clientAddress = ClientAddressFields.none
        /// The scheme that the origin gets.
        var clientScheme = "http"
        /// The servers of a reverse proxy whose URLs in Location become paths, because clients know it under another
        /// name; none if the origin gets the client's Host.
        var hiddenOrigins: [ProxyOrigin] = []
        /// How long the origin may take to respond, or to read the next bytes of content.
        var answerTimeout: Duration?
        /// Opens tunnels; nil if there are none.
        var transport: OriginTransport?
        /// Called for every response, once it was delivered or has failed.
        var onAnswer: (@Sendable (ProxyRecord) -> Void)?
        /// Called for responses that the proxy made itself, and for bodies that failed.
        var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// The recently parsed targets.
        private let heads = RecentHeads()
        private let clock: any HoldfastClock

        init(pipeline: Pipeline, targets: TargetRules) {
            serving = ServingPipeline(pipeline)
            clock = pipeline.configuration.clock
            self.targets = targets
        }

        /// The response to a request, also for every failure.
        func answer(_ request: ProxiedRequest) async -> Response {
            guard onAnswer != nil || onFailure != nil else { return await answerUnrecorded(request).response }
            let begun = clock.now
            var (response, refusal) = await answerUnrecorded(request)
            if request.version == HTTPVersion.http2.rawValue, !StreamHead.fits(response) {
                response.body.discard()
                let unsendable = ProxyRefusal(.badGateway, text: StreamHead.tooLarge)
                (response, refusal) = (self.response(unsendable), unsendable)
            }
            return recorded(response, refusal: refusal, to: request, since: begun)
        }

        /// Reports a response: that it is a refusal now, and the rest when its body was delivered or has failed.
        private func recorded(
            _ response: Response,
            refusal: ProxyRefusal?,
            to request: ProxiedRequest,
            since begun: MonotonicInstant
        ) -> Response {
            if let refusal { tell(refusal, of: request) }
            let record = record(of: response, to: request, since: begun)
            let hasContent = request.method != .head && ![204, 304].contains(response.status.rawValue)
            let hasClient = refusal?.clientHasLeft != true
            guard hasContent, hasClient, let source = ProxyHandler.source(of: response.body) else {
                if let onAnswer, var record {
                    record.bodyBytes = hasContent && hasClient ? response.body.length ?? 0 : 0
                    record.isComplete = hasClient
                    onAnswer(record)
                }
                return response
            }
            let watched = WatchedBody(
                source,
                ended: { [onAnswer, onFailure] bytes, end in
                    if let error = end.error, !(error is CancellationError) {
                        let text = "\(request.method) \(request.target) was interrupted after \(bytes) bytes: \(error)"
                        let client = request.clientAddress ?? request.remoteAddress?.ipAddress
                        onFailure?(ProxyFailure(.origin, text: text, clientAddress: client))
                    }
                    guard let onAnswer, var record else { return }
                    record.bodyBytes = bytes
                    record.isComplete = end.isWhole
                    onAnswer(record)
                }
            )
            var response = response
            response.body = ResponseBody(watched, length: response.body.length)
            return response
        }

        /// What gives a body piece by piece; nil if it is so short that it is passed on in one piece.
        private static func source(of body: ResponseBody) -> (any ByteSource)? {
            guard let bytes = body.bytesInMemory else { return body.source }
            return bytes.count > piece ? BytesContent(bytes, piece: piece) : nil
        }

        private static let piece = 64 << 10

        /// What is known of a response when its head is ready; nil if nobody asks for it.
        private func record(
            of response: Response,
            to request: ProxiedRequest,
            since begun: MonotonicInstant
        ) -> ProxyRecord? {
            guard onAnswer != nil else { return nil }
            return ProxyRecord(request, answer: response, start: clock.timestamp, begun: begun, now: clock.now)
        }

        private func tell(_ refusal: ProxyRefusal, of request: ProxiedRequest) {
            if refusal.clientHasLeft || refusal.isToldByServer { return }
            onFailure?(
                ProxyFailure(
                    refusal.status.rawValue < 500 ? .request : .origin,
                    text: "\(request.method) \(request.target) \(refusal.status): \(refusal.cause ?? refusal.text)",
                    clientAddress: request.clientAddress ?? request.remoteAddress?.ipAddress
                )
            )
        }

        private func answerUnrecorded(_ request: ProxiedRequest) async -> (response: Response, refusal: ProxyRefusal?) {
            do throws(ProxyRefusal) {
                if let own = try ownAnswer(request) { return (own, nil) }
                return (outgoing(try await exchange(request)), nil)
            } catch {
                return (response(error), error)
            }
        }

        /// The response to a request that is not forwarded.
        private func ownAnswer(_ request: ProxiedRequest) throws(ProxyRefusal) -> Response? {
            if let via, via.hasPassed(request.fields) {
                throw ProxyRefusal(
                    .loopDetected,
                    text: "the request has passed this proxy before, so it is in a loop"
                )
            }
            guard MaxForwards.decide(request.method, fields: request.fields) == .answer else { return nil }
            var response = Response(status: .ok, source: .synthesized)
            response.fields.append(.date, HTTPDate(clock.timestamp).description)
            guard request.method == .trace else { return response }
            let text = MaxForwards.trace(
                request.method,
                target: request.target,
                version: request.version,
                fields: request.fields
            )
            response.fields.append(.contentType, "message/http")
            response.body = ResponseBody(ByteChunk(copying: text.utf8))
            return response
        }

        /// The pipeline's response to a request.
        private func exchange(_ request: ProxiedRequest) async throws(ProxyRefusal) -> Response {
            let host = targets.asksByHost ? request.fields[.host] : nil
            let made = try heads.made(request.method, target: request.target, host: host) { () throws(ProxyRefusal) in
                try targets.head(request.method, target: request.target, host: host)
            }
            var sent = made.request
            let fields = outgoing(request, as: made.head)
            if !fields.isEmpty { sent.allHTTPHeaderFields = ProxiedRequest.joined(fields) }
            var options = CallOptions()
            options.exactHead = made.head
            if made.isKeyedOtherwise { options.cache = .noStore }
            if let sendInterim = request.sendInterim {
                options.onInterimResponse = { interim in
                    sendInterim(
                        ResponseHead(status: interim.status, fields: HopByHopFields.responseFields(interim.fields))
                    )
                }
            }
            do {
                if let limit = answerTimeout, case .oneShot(let length, let source) = request.body.form {
                    return try await upload(sent, length: length, source: source, options: options, limit: limit)
                }
                options.timeout = answerTimeout
                return try await serving.current.pipeline.send(sent, body: request.body, options: options)
            } catch {
                throw ProxyRefusal(error)
            }
        }

        /// Sends content that arrives from the client in pieces, for as long as it takes, while the origin makes
        /// progress.
        private func upload(
            _ request: URLRequest,
            length: Int?,
            source: any ByteSource,
            options: CallOptions,
            limit: Duration
        ) async throws -> Response {
            let upload = WatchedUpload(source, clock: clock)
            return try await withThrowingTaskGroup { group in
                group.addTask {
                    try await WatchedUpload.$current.withValue(upload) {
                        try await serving.current.pipeline.send(
                            request,
                            body: .oneShot(length: length, upload),
                            options: options
                        )
                    }
                }
                group.addTask {
                    try await upload.originStalled(for: limit)
                    throw ServiceError(.timeout, "The origin took too long.")
                }
                defer { group.cancelAll() }
                guard let response = try await group.next() else { throw CancellationError() }
                return response
            }
        }

        /// The fields of a request for the origin.
        private func outgoing(_ request: ProxiedRequest, as head: ExactRequestHead) -> HeaderFields {
            var fields = HopByHopFields.requestFields(request.fields)
            via?.append(to: &fields, version: request.version)
            if clientAddress != .none {
                clientAddress.add(
                    request.clientAddress,
                    host: request.authority(in: head),
                    scheme: clientScheme,
                    to: &fields
                )
            }
            if case .forward(let left) = MaxForwards.decide(request.method, fields: fields) {
                fields[MaxForwards.name] = String(left)
            }
            return fields
        }

        /// A response of the pipeline for the client.
        private func outgoing(_ response: Response) -> Response {
            if targets.role.isForward, response.status == .proxyAuthenticationRequired {
                response.body.discard()
                // A client would ask its user for the proxy's password, and send it here.
                return self.response(
                    ProxyRefusal(
                        .badGateway,
                        text: "the origin asked for credentials in a way that only a proxy may [407]"
                    )
                )
            }
            if response.source == .synthesized, response.body.length == 0, response.status == .gatewayTimeout {
                let reason = response.cacheDecision.map { " [\($0.reason)]" } ?? ""
                let own = self.response(
                    ProxyRefusal(
                        .gatewayTimeout,
                        text: "no usable response is stored, and the origin cannot be reached" + reason
                    )
                )
                var response = response
                response.fields = response.fields.merging(own.fields)
                response.body = own.body
                return response
            }
            var response = response
            response.fields = HopByHopFields.responseFields(response.fields)
            // The time of receipt, if the origin gave none (RFC 9110 §6.6.1).
            if !response.fields.contains(.date) {
                response.fields.append(.date, HTTPDate(clock.timestamp).description)
            }
            if !hiddenOrigins.isEmpty, let location = response.fields[.location] {
                if let path = ownPath(location) { response.fields[.location] = path }
            }
            via?.append(to: &response.fields, version: "1.1")
            return response
        }

        /// The path in a Location of our origin; nil if it leads elsewhere.
        private func ownPath(_ location: String) -> String? {
            for origin in hiddenOrigins where location.hasPrefix(origin.description) {
                let rest = location.dropFirst(origin.description.count)
                if rest.isEmpty { return "/" }
                if rest.hasPrefix("?") { return "/" + rest }
                // A path that begins with two slashes would name a host, and browsers drop tabs and take "\" for a slash.
                let next = rest.utf8.dropFirst().first { $0 != UInt8(ascii: "\t") }
                if rest.hasPrefix("/"), next != UInt8(ascii: "/"), next != UInt8(ascii: "\\") { return String(rest) }
            }
            return nil
        }

        /// A response that the proxy makes itself.
        private func response(_ refusal: ProxyRefusal) -> Response {
            var response = Response(status: refusal.status, source: .synthesized)
            response.fields.append(.date, HTTPDate(clock.timestamp).description)
            response.fields.append(.contentType, "text/plain; charset=utf-8")
            response.fields.append(.cacheControl, "no-store")
            if let seconds = refusal.retryAfter { response.fields.append(.retryAfter, String(seconds)) }
            response.body = ResponseBody(ByteChunk(copying: "holdfast: \(refusal.text)\n".utf8))
            response.attempts = refusal.attempts
            return response
        }
    }

    extension ProxyHandler: ClientHandler {
        func answer(_ request: ClientRequest) async -> Response {
            var proxied = ProxiedRequest(method: request.method, target: request.target.text)
            proxied.version = request.version.rawValue
            proxied.fields = request.fields
            proxied.body = request.body
            // The text of an address needs an allocation, which most responses can do without.
            proxied.remoteAddress = request.remoteAddress
            if clientAddress != .none || onAnswer != nil {
                proxied.clientAddress = request.remoteAddress?.ipAddress
            }
            proxied.sendInterim = { request.sendInterim($0) }
            return await answer(proxied)
        }
    }

    /// Tunnels of a forward proxy to listed hosts, and WebSocket connections to the origin or to listed hosts.
    extension ProxyHandler {
        func tunnel(_ request: ClientRequest) async -> TunnelOffer {
            guard let transport else { return .none }
            let begun = clock.now
            var proxied = ProxiedRequest(method: request.method, target: request.target.text)
            proxied.fields = request.fields
            proxied.clientAddress = request.remoteAddress?.ipAddress
            do {
                if case .forward(let rules) = targets.role.kind, request.method == .connect {
                    guard let place = rules.tunnel(to: request.target.text),
                        !targets.isOwn(place.host, port: place.port)
                    else { return .none }
                    let other = try await transport.tunnel(to: place)
                    return opened(proxied, to: other, status: 200, fields: [:], since: begun)
                }
                guard request.method == .get, request.version == .http11, request.body.isNone,
                    ProxyHandler.isWebSocket(request.fields),
                    MaxForwards.decide(.get, fields: request.fields) == .pass,
                    via?.hasPassed(request.fields) != true
                else { return .none }
                return try await upgrade(proxied, over: transport, since: begun)
            } catch is CancellationError {
                return .none
            } catch {
                let refusal = (error as? ProxyRefusal) ?? ProxyRefusal(error)
                return .refused(recorded(response(refusal), refusal: refusal, to: proxied, since: begun))
            }
        }

        /// Requests the other protocol on a new connection; if it is refused, the request is handled like any other.
        private func upgrade(
            _ request: ProxiedRequest,
            over transport: OriginTransport,
            since begun: MonotonicInstant
        ) async throws -> TunnelOffer {
            let head = try targets.head(.get, target: request.target, host: request.fields[.host])
            var sent = head.makeRequest()
            var fields = outgoing(request, as: head)
            fields[.connection] = "Upgrade"
            fields[.upgrade] = "websocket"
            sent.allHTTPHeaderFields = ProxiedRequest.joined(fields)
            let outgoing = try OutgoingRequest(sent, exact: head)
            if case .forward(let rules) = targets.role.kind {
                // No rules apply to the data afterwards, as in a CONNECT tunnel.
                guard rules.opens(host: outgoing.key.host, port: outgoing.key.port, usualPort: 80) else { return .none }
            }
            let (other, found) = try await transport.upgrade(outgoing, within: answerTimeout, clock: clock)
            guard let answer = found, answer.status.rawValue == 101, ProxyHandler.isWebSocket(answer.fields) else {
                other.close()
                return .none
            }
            var granted = HopByHopFields.responseFields(answer.fields)
            granted[.upgrade] = "websocket"
            via?.append(to: &granted, version: "1.1")
            return opened(request, to: other, status: 101, fields: granted, since: begun)
        }

        /// Whether Connection and Upgrade request or grant WebSocket and nothing else: other protocols would bypass
        /// these rules.
        private static func isWebSocket(_ fields: HeaderFields) -> Bool {
            let words = fields.values(of: .connection).flatMap { RequestFraming.members($0) }
            return fields.values(of: .upgrade).map { $0.loweringASCII() } == ["websocket"]
                && words.contains { RequestFraming.matches($0, word: "upgrade") }
        }

        private func opened(
            _ request: ProxiedRequest,
            to other: ByteChannel,
            status: StatusCode,
            fields: HeaderFields,
            since begun: MonotonicInstant
        ) -> TunnelOffer {
            var head = ByteBuffer()
            let connection: ResponseHeadWriter.Framing.Connection = status.rawValue == 101 ? .upgrade : .unsaid
            ResponseHeadWriter.write(status, fields: fields, framing: .init(.unsaid, connection: connection), to: &head)
            let record = record(of: Response(status: status), to: request, since: begun)
            return .open(other, head: head) { [onAnswer] bytes, isWhole in
                guard let onAnswer, var record else { return }
                record.bodyBytes = bytes
                record.isComplete = isWhole
                onAnswer(record)
            }
        }
    }

    /// A request as a client sent it, as the forwarding rules see it.
    struct ProxiedRequest: Sendable {
        /// The method as it arrived.
        var method: RequestMethod
        /// The target as it arrived.
        var target: String
        /// The version of the message, such as `1.1`.
        var version = "1.1"
        /// The field lines in their order.
        var fields = HeaderFields()
        /// The content.
        var body = RequestBody.none
        /// The address of the client, without its port; made only if it is needed.
        var clientAddress: String?
        var remoteAddress: SocketAddress?
        /// Sends an interim response to the client.
        var sendInterim: (@Sendable (ResponseHead) -> Void)?

        /// The host and port that the client requests, spelled as in the key, so that an origin cannot make of them what is then stored
        /// for others; nil if it names none. An absolute target counts, whatever Host says (RFC 9112 §3.2.2).
        func authority(in head: ExactRequestHead) -> String? {
            let isAbsolute = target.utf8.first != UInt8(ascii: "/") && target != "*"
            guard isAbsolute || fields[.host]?.isEmpty == false else { return nil }
            return head.target.origin.split(separator: "/").last.map { String($0) }
        }

        /// The fields as URLRequest has them: lines with the same name joined.
        static func joined(_ fields: HeaderFields) -> [String: String] {
            var joined: [String: String] = [:]
            joined.reserveCapacity(fields.count)
            // The names in their first spelling; most requests repeat none, and a short array is faster than a set.
            var spellings: [FieldName] = []
            spellings.reserveCapacity(fields.count)
            for line in fields {
                if let spelling = spellings.first(where: { $0 == line.name }) {
                    joined[spelling.rawName, default: ""] += (line.name.lineSeparator ?? ", ") + line.value
                } else {
                    spellings.append(line.name)
                    joined[line.name.rawName] = line.value
                }
            }
            return joined
        }
    }

    /// The current pipeline for requests, which can be replaced.
    final class ServingPipeline: Sendable {
        /// A pipeline, kept as long as a request needs it; one reference instead of its parts.
        final class Held: Sendable {
            let pipeline: Pipeline

            init(_ pipeline: Pipeline) {
                self.pipeline = pipeline
            }
        }

        private let latest: Mutex<Held>

        init(_ pipeline: Pipeline) {
            latest = Mutex(Held(pipeline))
        }

        /// The pipeline for a whole request that begins now.
        var current: Held { latest.withLock { $0 } }

        /// Uses another pipeline for requests that begin from now on.
        func replace(with pipeline: Pipeline) {
            latest.withLock { $0 = Held(pipeline) }
        }
    }

    /// The recently parsed targets: a frequent target is parsed once, and not for each request.
    ///
    /// Keeps GET requests with short targets, and drops all of them when there are too many.
    final class RecentHeads: Sendable {
        /// A head, and a request for it without fields.
        struct Made: Sendable {
            let head: ExactRequestHead
            let request: URLRequest
            /// Whether a cache would use another spelling of the target for the key than the one that is sent.
            let isKeyedOtherwise: Bool
        }

        private let made = Mutex<[String: Made]>([:])
        private static let count = 1_024
        private static let length = 512

        /// The parsed target of a GET.
        ///
        /// - Parameter make: parses it if it is not known.
        func made(
            _ method: RequestMethod,
            target: String,
            host: String?,
            make: () throws(ProxyRefusal) -> ExactRequestHead
        ) throws(ProxyRefusal) -> Made {
            let isHeld = method == .get && target.utf8.count + (host?.utf8.count ?? 0) <= RecentHeads.length
            let name = host.map { "\($0) \(target)" } ?? target
            if isHeld, let known = made.withLock({ $0[name] }) { return known }
            let head = try make()
            let new = Made(
                head: head,
                request: head.makeRequest(),
                isKeyedOtherwise: TargetRules.isKeyedOtherwise(head)
            )
            guard isHeld else { return new }
            made.withLock { made in
                if made.count >= RecentHeads.count { made.removeAll(keepingCapacity: true) }
                made[name] = new
            }
            return new
        }
    }

    /// The content of a request on its way from the client to the origin, which records who is waiting for whom.
    ///
    /// A time limit for a whole upload would end every large one; this limits how long the origin may do nothing.
    final class WatchedUpload: ByteSource {
        private enum State {
            /// The client has to send.
            case awaitsClient
            /// The origin has to read the available content, or to respond.
            case awaitsOrigin(since: MonotonicInstant)
        }

        /// The content that the current task sends.
        @TaskLocal static var current: WatchedUpload?

        private let upstream: any ByteSource
        private let clock: any HoldfastClock
        private let state: Mutex<State>
        private let stalled = Atomic(false)

        /// Whether the origin was given up because it did nothing.
        var hasStalled: Bool { stalled.load(ordering: .relaxed) }

        init(_ upstream: any ByteSource, clock: any HoldfastClock) {
            self.upstream = upstream
            self.clock = clock
            state = Mutex(.awaitsOrigin(since: clock.now))
        }

        func next() async throws -> ByteChunk? {
            state.withLock { $0 = .awaitsClient }
            defer {
                let now = clock.now
                state.withLock { $0 = .awaitsOrigin(since: now) }
            }
            return try await upstream.next()
        }

        func cancel() {
            upstream.cancel()
        }

        /// Waits until the origin has done nothing for this long.
        ///
        /// - Throws: `CancellationError` when the task is cancelled.
        func originStalled(for limit: Duration) async throws {
            while true {
                let now = clock.now
                let since =
                    switch state.withLock({ $0 }) {
                    case .awaitsClient: now
                    case .awaitsOrigin(let since): since
                    }
                let end = since.advanced(by: limit)
                guard end > now else { return stalled.store(true, ordering: .relaxed) }
                try await clock.sleep(until: end)
            }
        }
    }
#endif
