// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

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
                throw ProxyRefusal(.loopDetected, "the request has passed this proxy before; it goes round in a loop")
            }
            guard MaxForwards.judge(request.method, request.fields) == .answer else { return nil }
            guard request.method == .trace else { return Response(status: .ok, source: .synthesized) }
            let text = MaxForwards.trace(request.method, request.target, request.version, request.fields)
            var response = Response(status: .ok, source: .synthesized)
            response.fields.append(.contentType, "message/http")
            response.body = ResponseBody(ByteChunk(copying: text.utf8))
            return response
        }

        /// What the pipeline makes of a request.
        private func exchange(_ request: ProxiedRequest) async throws(ProxyRefusal) -> Response {
            let made = try heads.made(request.method, request.target) { () throws(ProxyRefusal) in
                try targets.head(request.method, request.target)
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
                    return try await upload(sent, length, source, options, limit)
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
            _ length: Int?,
            _ source: any ByteSource,
            _ options: CallOptions,
            _ limit: Duration
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
            if case .forward(let left) = MaxForwards.judge(request.method, fields) {
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
                    ProxyRefusal(.badGateway, "the origin asked for credentials as only a proxy may [407]")
                )
            }
            if response.source == .synthesized, response.body.length == 0, response.status == .gatewayTimeout {
                let reason = response.cacheDecision.map { " [\($0.reason)]" } ?? ""
                let own = self.response(
                    ProxyRefusal(.gatewayTimeout, "nothing usable is stored, and the origin cannot be asked" + reason)
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
#endif
