// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    public import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// Answers the requests of clients through a pipeline: translates on the way in and out, and judges nothing of caching.
    struct ProxyHandler: Sendable {
        /// Looks up, stores, sends and retries.
        let pipeline: Pipeline
        /// Who is asked.
        let targets: TargetRules
        /// The name in Via; nil for none.
        var via: ViaField?
        /// Whether the origin is told who asked.
        var clientAddress = ClientAddressFields.none
        /// The scheme that the origin is told.
        var clientScheme = "http"
        /// The servers of a reverse proxy whose own URLs in Location become paths, since clients know it under another name; none where
        /// they are told the client's Host.
        var hiddenOrigins: [ProxyOrigin] = []
        /// How long the origin may take to answer, or to take the next bytes of content.
        var answerTimeout: Duration?
        /// Opens tunnels; nil where there are none.
        var transport: OriginTransport?
        /// Is told of every answer, once it is handed over whole or broken off.
        var onAnswer: (@Sendable (ProxyRecord) -> Void)?
        /// Is told of what the proxy had to answer itself, and of bodies that broke off.
        var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// What was made of the targets of late.
        private let heads: RecentHeads

        init(
            pipeline: Pipeline,
            targets: TargetRules,
            via: ViaField? = nil,
            clientAddress: ClientAddressFields = .none,
            answerTimeout: Duration? = nil,
            onAnswer: (@Sendable (ProxyRecord) -> Void)? = nil,
            onFailure: (@Sendable (ProxyFailure) -> Void)? = nil
        ) {
            self.pipeline = pipeline
            self.targets = targets
            self.via = via
            self.clientAddress = clientAddress
            self.answerTimeout = answerTimeout
            self.onAnswer = onAnswer
            self.onFailure = onFailure
            heads = RecentHeads()
        }

        private var clock: any HoldfastClock { pipeline.configuration.clock }

        /// The answer to a request; every failure is one as well.
        func answer(_ request: ProxiedRequest) async -> Response {
            guard onAnswer != nil || onFailure != nil else { return await answerUnrecorded(request).response }
            let begun = clock.now
            var (response, refusal) = await answerUnrecorded(request)
            if let refusal { tell(refusal, of: request) }
            let record = onAnswer.map { _ in
                ProxyRecord(request, answer: response, start: clock.timestamp, begun: begun, now: clock.now)
            }
            let hasContent = request.method != .head && ![204, 304].contains(response.status.rawValue)
            guard hasContent, let source = response.body.source else {
                if let onAnswer, var record {
                    record.bodyBytes = hasContent ? response.body.length ?? 0 : 0
                    onAnswer(record)
                }
                return response
            }
            let body = RecordedBody(source) { [onAnswer, onFailure] bytes, error, isWhole in
                if let error, !(error is CancellationError) {
                    let text = "\(request.method) \(request.target) broke off after \(bytes) bytes: \(error)"
                    let client = request.clientAddress ?? request.remoteAddress?.ipAddress
                    onFailure?(ProxyFailure(.origin, text: text, clientAddress: client))
                }
                guard let onAnswer, var record else { return }
                record.bodyBytes = bytes
                record.isComplete = isWhole
                onAnswer(record)
            }
            response.body = ResponseBody(body, length: response.body.length)
            return response
        }

        private func tell(_ refusal: ProxyRefusal, of request: ProxiedRequest) {
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

        /// The answer to a request that goes no further.
        private func ownAnswer(_ request: ProxiedRequest) throws(ProxyRefusal) -> Response? {
            if let via, via.hasPassed(request.fields) {
                throw ProxyRefusal(
                    .loopDetected,
                    text: "the request has passed this proxy before; it goes round in a loop"
                )
            }
            guard MaxForwards.judge(request.method, fields: request.fields) == .answer else { return nil }
            guard request.method == .trace else { return Response(status: .ok, source: .synthesized) }
            let text = MaxForwards.trace(
                request.method,
                target: request.target,
                version: request.version,
                fields: request.fields
            )
            var response = Response(status: .ok, source: .synthesized)
            response.fields.append(.contentType, "message/http")
            response.body = ResponseBody(ByteChunk(copying: text.utf8))
            return response
        }

        /// What the pipeline makes of a request.
        private func exchange(_ request: ProxiedRequest) async throws(ProxyRefusal) -> Response {
            let host = targets.asksByHost ? request.fields[.host] : nil
            let made = try heads.made(request.method, target: request.target, host: host) { () throws(ProxyRefusal) in
                try targets.head(request.method, target: request.target, host: host)
            }
            var sent = made.request
            let fields = outgoing(request)
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
                return try await pipeline.send(sent, body: request.body, options: options)
            } catch {
                throw ProxyRefusal(error)
            }
        }

        /// Sends content that comes from the client bit by bit, however long it takes, as long as the origin goes on.
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
                    try await pipeline.send(request, body: .oneShot(length: length, upload), options: options)
                }
                group.addTask {
                    try await upload.originStalled(for: limit)
                    throw ServiceError(.timeout, "The origin took longer than it may.")
                }
                defer { group.cancelAll() }
                guard let response = try await group.next() else { throw CancellationError() }
                return response
            }
        }

        /// The fields of a request as they go to the origin.
        private func outgoing(_ request: ProxiedRequest) -> HeaderFields {
            var fields = HopByHopFields.requestFields(request.fields)
            via?.append(to: &fields, version: request.version)
            clientAddress.add(
                request.clientAddress,
                host: request.fields[.host].flatMap { $0.isEmpty ? nil : $0 },
                scheme: clientScheme,
                to: &fields
            )
            if case .forward(let left) = MaxForwards.judge(request.method, fields: fields) {
                fields[MaxForwards.name] = String(left)
            }
            return fields
        }

        /// A response of the pipeline as it goes to the client.
        private func outgoing(_ response: Response) -> Response {
            if targets.role.isForward, response.status == .proxyAuthenticationRequired {
                response.body.discard()
                // A client would ask its user for the proxy's password, and send it here.
                return self.response(
                    ProxyRefusal(.badGateway, text: "the origin asked for credentials as only a proxy may [407]")
                )
            }
            if response.source == .synthesized, response.body.length == 0, response.status == .gatewayTimeout {
                let reason = response.cacheDecision.map { " [\($0.reason)]" } ?? ""
                let own = self.response(
                    ProxyRefusal(
                        .gatewayTimeout,
                        text: "nothing usable is stored, and the origin cannot be asked" + reason
                    )
                )
                var response = response
                response.fields = response.fields.merging(own.fields)
                response.body = own.body
                return response
            }
            var response = response
            response.fields = HopByHopFields.responseFields(response.fields)
            if !hiddenOrigins.isEmpty, let location = response.fields[.location] {
                if let path = ownPath(location) { response.fields[.location] = path }
            }
            via?.append(to: &response.fields, version: "1.1")
            return response
        }

        /// The path that a Location of an origin's own means; nil for one that leads elsewhere.
        private func ownPath(_ location: String) -> String? {
            for origin in hiddenOrigins where location.hasPrefix(origin.description) {
                let rest = location.dropFirst(origin.description.count)
                if rest.isEmpty { return "/" }
                if rest.hasPrefix("?") { return "/" + rest }
                // What begins with two slashes would name a host.
                if rest.hasPrefix("/"), !rest.hasPrefix("//") { return String(rest) }
            }
            return nil
        }

        /// An answer of the proxy's own.
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

    extension ResponseSource {
        /// Whether the origin was asked and its answer handed on.
        fileprivate var isFromOrigin: Bool {
            switch self {
            case .network, .revalidated: true
            case .fresh, .stale, .collapsed, .inProcess, .synthesized: false
            }
        }
    }

    extension ProxyHandler: ClientHandler {
        func answer(_ request: ClientRequest) async -> Response {
            var proxied = ProxiedRequest(method: request.method, target: request.target.text)
            if request.version == .http10 { proxied.version = "1.0" }
            proxied.fields = request.fields
            proxied.body = request.body
            // The text of an address costs an allocation, which most answers can be made without.
            proxied.remoteAddress = request.remoteAddress
            if clientAddress != .none || onAnswer != nil {
                proxied.clientAddress = request.remoteAddress?.ipAddress
            }
            proxied.sendInterim = { request.sendInterim($0) }
            return await answer(proxied)
        }
    }

    /// Tunnels of a forward proxy to hosts that are named, and WebSocket connections through a reverse proxy.
    extension ProxyHandler {
        func tunnel(_ request: ClientRequest) async -> TunnelOffer {
            guard let transport else { return .none }
            var proxied = ProxiedRequest(method: request.method, target: request.target.text)
            proxied.fields = request.fields
            proxied.clientAddress = request.remoteAddress?.ipAddress
            do {
                switch targets.role.kind {
                case .forward(let rules):
                    guard request.method == .connect, let place = rules.tunnel(to: request.target.text) else {
                        return .none
                    }
                    guard !targets.isOwn(place.host, port: place.port) else { return .none }
                    let other = try await transport.tunnel(to: place)
                    return opened(proxied, to: other, status: 200, fields: [:], rest: ByteBuffer())
                case .reverse:
                    guard request.method == .get, request.version == .http11, request.body.isNone,
                        ProxyHandler.isWebSocket(request.fields),
                        MaxForwards.judge(.get, fields: request.fields) == .pass,
                        via?.hasPassed(request.fields) != true,
                        let (member, keepsHost) = transport.nextOrigin(at: clock.now)
                    else { return .none }
                    return try await upgrade(proxied, over: transport, to: member, keepingHost: keepsHost)
                }
            } catch is CancellationError {
                return .none
            } catch {
                let refusal = (error as? ProxyRefusal) ?? ProxyRefusal(error)
                tell(refusal, of: proxied)
                return .refused(response(refusal))
            }
        }

        /// Asks for the other protocol over a connection of its own; one that is not granted is a request like any other.
        private func upgrade(
            _ request: ProxiedRequest,
            over transport: OriginTransport,
            to member: OriginGroup.Member,
            keepingHost: Bool
        ) async throws -> TunnelOffer {
            let head = try targets.head(.get, target: request.target, host: request.fields[.host])
            var sent = head.makeRequest()
            var fields = outgoing(request)
            fields[.connection] = "Upgrade"
            fields[.upgrade] = "websocket"
            if keepingHost { fields[.host] = request.fields[.host] }
            sent.allHTTPHeaderFields = ProxiedRequest.joined(fields)
            var outgoing = try OutgoingRequest(sent, exact: head)
            outgoing.aim(at: member, keepingHost: keepingHost)
            let other = try await transport.tunnel(to: member.key)
            do {
                try await other.write(outgoing.head(.none, allocator: other.channel.allocator))
                var parser = ResponseHeadParser()
                let deadline = answerTimeout.map { NIODeadline.now() + $0.timeAmount }
                while var bytes = try await other.read(by: deadline) {
                    var found: (head: ResponseHeadParser.Head, count: Int)?
                    try bytes.withUnsafeReadableBytes { view in found = try parser.read(view) }
                    guard let found else { continue }
                    bytes.moveReaderIndex(forwardBy: found.count)
                    let answer = found.head.head
                    guard answer.status.rawValue == 101, ProxyHandler.isWebSocket(answer.fields) else { break }
                    var fields = HopByHopFields.responseFields(answer.fields)
                    fields[.upgrade] = "websocket"
                    via?.append(to: &fields, version: "1.1")
                    return opened(request, to: other, status: 101, fields: fields, rest: bytes)
                }
                other.close()
                return .none
            } catch {
                other.close()
                throw OriginFailure.serviceError(for: error, progress: .headSent, connectionReused: false)
            }
        }

        /// Whether Connection and Upgrade ask for WebSocket, or grant it, and nothing else: other protocols would pass these rules by.
        private static func isWebSocket(_ fields: HeaderFields) -> Bool {
            let words = fields.values(of: .connection).flatMap { $0.split(separator: ",") }
            return fields.values(of: .upgrade).map { $0.loweringASCII() } == ["websocket"]
                && words.contains { word in String(word).loweringASCII().filter { $0 != " " } == "upgrade" }
        }

        private func opened(
            _ request: ProxiedRequest,
            to other: ByteChannel,
            status: StatusCode,
            fields: HeaderFields,
            rest: ByteBuffer
        ) -> TunnelOffer {
            var head = ByteBuffer()
            let connection: ResponseHeadWriter.Framing.Connection = status.rawValue == 101 ? .upgrade : .unsaid
            ResponseHeadWriter.write(status, fields: fields, framing: .init(.unsaid, connection: connection), to: &head)
            head.writeImmutableBuffer(rest)
            let response = Response(status: status)
            let begun = clock.now
            return .open(other, head: head) { [onAnswer, clock] bytes in
                guard let onAnswer else { return }
                var record = ProxyRecord(
                    request,
                    answer: response,
                    start: clock.timestamp,
                    begun: begun,
                    now: clock.now
                )
                record.bodyBytes = bytes
                onAnswer(record)
            }
        }
    }

    /// A request as a client sent it: what the rules of forwarding look at.
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
        /// The address of the client, without its port; made only where something asks for it.
        var clientAddress: String?
        var remoteAddress: SocketAddress?
        /// Sends an interim response to the client.
        var sendInterim: (@Sendable (ResponseHead) -> Void)?

        /// The fields as URLRequest holds them: lines of one name joined, those of Cookie by "; " (RFC 9110 §5.3, RFC 6265 §5.4).
        static func joined(_ fields: HeaderFields) -> [String: String] {
            var joined: [String: String] = [:]
            joined.reserveCapacity(fields.count)
            // The names as they were spelled first; most requests repeat none, and an array that short beats a set.
            var spellings: [FieldName] = []
            spellings.reserveCapacity(fields.count)
            for line in fields {
                if let spelling = spellings.first(where: { $0 == line.name }) {
                    joined[spelling.rawName, default: ""] += (line.name == .cookie ? "; " : ", ") + line.value
                } else {
                    spellings.append(line.name)
                    joined[line.name.rawName] = line.value
                }
            }
            return joined
        }
    }

    /// One request and how it was answered, for logs; told when the answer has been handed over, or has broken off.
    public struct ProxyRecord: Sendable {
        /// The method as it arrived.
        public let method: RequestMethod
        /// The target as it arrived; it may bear credentials, and quotation marks.
        public let target: String
        /// The version of HTTP that the client speaks, such as `1.1`.
        public let version: String
        /// The address of the client, without its port; nil where it has none.
        public let clientAddress: String?
        /// The User-Agent and the Referer of the request.
        public let userAgent: String?
        public let referer: String?
        /// The status of the answer.
        public let status: StatusCode
        /// How many bytes of its body were handed over to the connection.
        public internal(set) var bodyBytes = 0
        /// Whether that is all of the body: false where the origin broke off or the client went away.
        public internal(set) var isComplete = true
        /// What the cache did; nil where none was asked.
        public let decision: CacheDecision?
        /// Where the answer came from.
        public let source: ResponseSource
        /// How many times the origin was asked.
        public let attempts: Int
        /// How long the origin took to answer, all attempts together; nil where it was not asked for this request.
        public let originDuration: Duration?
        /// When the head of the answer was there, and how long that took.
        public let start: Timestamp
        public let duration: Duration
    }

    extension ProxyRecord {
        fileprivate init(
            _ request: ProxiedRequest,
            answer response: Response,
            start: Timestamp,
            begun: MonotonicInstant,
            now: MonotonicInstant
        ) {
            let attempts = response.attempts
            let asked = response.source.isFromOrigin || response.source == .synthesized || response.source == .stale
            self.init(
                method: request.method,
                target: request.target,
                version: request.version,
                clientAddress: request.clientAddress,
                userAgent: request.fields[.userAgent],
                referer: request.fields[.referer],
                status: response.status,
                decision: response.cacheDecision,
                source: response.source,
                attempts: response.source.isFromOrigin ? max(1, attempts.count) : attempts.count,
                originDuration: asked && !attempts.isEmpty
                    ? attempts.reduce(.zero) { $0 + $1.start.duration(to: $1.end) } : nil,
                start: start,
                duration: begun.duration(to: now)
            )
        }
    }

    /// Something that went wrong, for a log of failures: one line without line breaks.
    public struct ProxyFailure: Sendable, Hashable {
        /// Where it went wrong.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The origin could not be asked, did not answer, or broke off; the cause stands in the text.
            case origin
            /// A request was refused: by the rules, or because it could not be read.
            case request
            /// A connection was refused or could not be taken: too many, or no descriptor left.
            case connection
            /// The store failed: a full disk, a Redis that cannot be reached.
            case store
        }

        /// Where.
        public let kind: Kind
        /// What happened, and the cause as the system names it; at most 1,024 characters, none of them a control character.
        public let text: String
        /// The address of the client, without its port, where there is one.
        public let clientAddress: String?

        /// A failure; what cannot stand in a line is replaced.
        public init(_ kind: Kind, text: String, clientAddress: String? = nil) {
            self.kind = kind
            self.text = String(
                String.UnicodeScalarView(
                    text.unicodeScalars.prefix(1_024).map {
                        $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "?" : $0
                    }
                )
            )
            self.clientAddress = clientAddress
        }
    }

    /// A body whose end is told, and how much of it was read.
    private final class RecordedBody: ByteSource {
        private struct State {
            var bytes = 0
            var isOver = false
        }

        private let upstream: any ByteSource
        private let state = Mutex(State())
        private let ended: @Sendable (_ bytes: Int, _ error: (any Error)?, _ isWhole: Bool) -> Void

        init(
            _ upstream: any ByteSource,
            ended: @escaping @Sendable (_ bytes: Int, _ error: (any Error)?, _ isWhole: Bool) -> Void
        ) {
            self.upstream = upstream
            self.ended = ended
        }

        deinit { end(nil, isWhole: false) }

        func next() async throws -> ByteChunk? {
            do {
                let chunk = try await upstream.next()
                if let chunk { state.withLock { $0.bytes += chunk.count } } else { end(nil, isWhole: true) }
                return chunk
            } catch {
                end(error, isWhole: false)
                throw error
            }
        }

        func cancel() {
            upstream.cancel()
            end(nil, isWhole: false)
        }

        private func end(_ error: (any Error)?, isWhole: Bool) {
            let bytes: Int? = state.withLock { state in
                defer { state.isOver = true }
                return state.isOver ? nil : state.bytes
            }
            if let bytes { ended(bytes, error, isWhole) }
        }
    }

    /// What was made of the targets of late: a hot target is read once, and not for each request.
    ///
    /// Holds GET requests of short targets, and lets all of them go when there are too many.
    final class RecentHeads: Sendable {
        /// A head, and a request for it without fields.
        struct Made: Sendable {
            let head: ExactRequestHead
            let request: URLRequest
            /// Whether a cache would key it by another target than the one that is sent.
            let isKeyedOtherwise: Bool
        }

        private let made = Mutex<[String: Made]>([:])
        private static let count = 1_024
        private static let length = 512

        /// What a target of a GET comes to.
        ///
        /// - Parameter make: reads it where it is not known.
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
                isKeyedOtherwise: TargetRules.hasDotSegments(head.requestTarget)
                    || TargetRules.hasStrayPercent(head.requestTarget)
            )
            guard isHeld else { return new }
            made.withLock { made in
                if made.count >= RecentHeads.count { made.removeAll(keepingCapacity: true) }
                made[name] = new
            }
            return new
        }
    }
#endif
