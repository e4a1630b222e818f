// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && canImport(HoldfastProxy)
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Carries requests over real sockets: a client of raw bytes, the proxy, and an origin that plays the case.
    struct ProxyCourier: CaseCourier {
        private let server: LoopbackServer
        private let proxy: ProxyServer
        private let cache: HTTPCache?

        init(_ origin: CaseOrigin, clock: ManualClock, mode: ConformanceMode?) async throws {
            server = try LoopbackServer.start { ProxyCourier.play(origin, $0) }
            cache = mode.map { HTTPCache(store: MemoryStore(capacity: 1 << 20), options: $0.options) }
            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin("http://127.0.0.1:\(server.port)")))
            configuration.port = 0
            configuration.cache = cache
            configuration.clock = clock
            configuration.retrierFactory = .never
            // A pause of the origin moves the clock.
            configuration.answerTimeout = nil
            proxy = try await ProxyServer.start(configuration)
        }

        func receive(_ request: URLRequest, returnsRedirects: Bool) async -> ReceivedResponse {
            var asked = RawAsk(request)
            var received = await asked.answer(from: proxy.port)
            // What a client does that follows redirects; the proxy hands them up.
            for _ in 0..<20 where !returnsRedirects {
                guard let head = RequestHead(asked), let status = received.status,
                    let next = Redirection.next(
                        after: ResponseHead(status: StatusCode(rawValue: status), fields: received.fields),
                        to: head
                    )
                else { break }
                asked.method = next.method.rawValue
                asked.target = next.target.path + (next.target.query.map { "?\($0)" } ?? "")
                if !next.keepsBody { asked.body = nil }
                let interim = received.interim
                received = await asked.answer(from: proxy.port)
                received.interim = interim + received.interim
            }
            return received
        }

        func settle() async {
            await proxy.pipeline.drain()
        }

        func end() async {
            await proxy.close()
            await cache?.close()
            server.stop()
        }

        /// The origin's answer as bytes.
        private static func play(_ origin: CaseOrigin, _ request: LoopbackRequest) -> LoopbackReply {
            var fields = HeaderFields()
            for field in request.fields { fields.append(rawName: field.name, value: field.value) }
            // Those of the hop, which a request within the process has not.
            for name in [FieldName.host, .contentLength] { fields.removeAll(name) }
            guard let reply = try? origin.reply(to: request.method, request.path, fields) else {
                return LoopbackReply(before: [.close])
            }
            let isCoded = reply.fields.contains(.transferEncoding)
            return LoopbackReply(
                reply.status,
                fields: reply.fields.map { ($0.name.rawName, $0.value) },
                framing: reply.body == nil ? .bare : isCoded ? .untilClose : .automatic,
                before: reply.interim.map { head in
                    .interim(head.status.rawValue, fields: head.fields.map { ($0.name.rawName, $0.value) })
                },
                steps: reply.body.map { [.send($0)] } ?? []
            )
        }
    }

    extension RequestHead {
        /// The head of a request at the proxy's only origin.
        fileprivate init?(_ asked: RawAsk) {
            guard let target = try? TargetURI("http://proxy.example" + asked.target) else { return nil }
            self.init(method: RequestMethod(rawValue: asked.method), target: target)
        }
    }
#endif
