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
        /// How long the origin may take to answer, or to take the next bytes of content.
        var answerTimeout: Duration?
        /// Is told of every answer.
        var onAnswer: (@Sendable (ProxyRecord) -> Void)?

        /// What was made of the targets of late.
        private let heads: RecentHeads

        init(
            pipeline: Pipeline,
            targets: TargetRules,
            via: ViaField? = nil,
            clientAddress: ClientAddressFields = .none,
            answerTimeout: Duration? = nil,
            onAnswer: (@Sendable (ProxyRecord) -> Void)? = nil
        ) {
            self.pipeline = pipeline
            self.targets = targets
            self.via = via
            self.clientAddress = clientAddress
            self.answerTimeout = answerTimeout
            self.onAnswer = onAnswer
            heads = RecentHeads()
        }

        private var clock: any HoldfastClock { pipeline.configuration.clock }

        /// The answer to a request; every failure is one as well.
        func answer(_ request: ProxiedRequest) async -> Response {
            guard let onAnswer else { return await answerUnrecorded(request) }
            let (start, begun) = (clock.timestamp, clock.now)
            let response = await answerUnrecorded(request)
            onAnswer(
                ProxyRecord(
                    method: request.method,
                    target: request.target,
                    version: request.version,
                    clientAddress: request.clientAddress,
                    userAgent: request.fields[.userAgent],
                    referer: request.fields[.referer],
                    status: response.status,
                    bodyLength: response.body.length,
                    decision: response.cacheDecision,
                    source: response.source,
                    attempts: response.source.isFromOrigin ? max(1, response.attempts.count) : response.attempts.count,
                    start: start,
                    duration: begun.duration(to: clock.now)
                )
            )
            return response
        }

        private func answerUnrecorded(_ request: ProxiedRequest) async -> Response {
            do throws(ProxyRefusal) {
                if let own = try ownAnswer(request) { return own }
                return outgoing(try await exchange(request))
            } catch {
                return response(error)
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
            let made = try heads.made(request.method, target: request.target) { () throws(ProxyRefusal) in
                try targets.head(request.method, target: request.target)
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
            clientAddress.add(request.clientAddress, to: &fields)
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
            via?.append(to: &response.fields, version: "1.1")
            return response
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
            if clientAddress != .none || onAnswer != nil { proxied.clientAddress = request.remoteAddress?.ipAddress }
            proxied.sendInterim = { request.sendInterim($0) }
            return await answer(proxied)
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
        /// The address of the client, without its port.
        var clientAddress: String?
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

    /// One request and how it was answered, for logs; told when the head of the answer is there.
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
        /// The length of its body where it is known by then.
        public let bodyLength: Int?
        /// What the cache did; nil where none was asked.
        public let decision: CacheDecision?
        /// Where the answer came from.
        public let source: ResponseSource
        /// How many times the origin was asked.
        public let attempts: Int
        /// When the request began to be answered, and how long it took up to the head of the answer.
        public let start: Timestamp
        public let duration: Duration
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
            make: () throws(ProxyRefusal) -> ExactRequestHead
        ) throws(ProxyRefusal) -> Made {
            let isHeld = method == .get && target.utf8.count <= RecentHeads.length
            if isHeld, let known = made.withLock({ $0[target] }) { return known }
            let head = try make()
            let new = Made(
                head: head,
                request: head.makeRequest(),
                isKeyedOtherwise: TargetRules.hasDotSegments(head.requestTarget)
            )
            guard isHeld else { return new }
            made.withLock { made in
                if made.count >= RecentHeads.count { made.removeAll(keepingCapacity: true) }
                made[target] = new
            }
            return new
        }
    }
#endif
