// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/migrating.md for those who come from typed clients, as it stands there.
@Suite("docs/migrating.md: typed clients", .timeLimit(.minutes(20)))
struct MigratingTypedPageTests {
    struct Product: Decodable, Equatable {
        let name: String
        let unitPrice: Int
    }

    struct Shop: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com" }
        var authorization: Authorization { get async { .custom(key: "X-API-Key", value: "k") } }
        var hooks: [any ServiceHook] { [CachingServiceHook(ttl: .seconds(600))] }
        var retrierFactory: any RetrierFactory { .default }
    }

    struct ProductRequest: JsonRequest {
        typealias Result = Product
        let id: Int
        var routes: HttpRoute { ["products", id] }
        var query: HttpQuery { ["lang": "en"] }
    }

    @Test("S-T37: a service that recomputes its hooks has one of each per client, so its cache hits")
    func squid() async throws {
        let shop = ServiceClient(Shop())
        #expect(shop.pipeline.cache == nil)
        let transport = ScriptedTransport([
            .respond(200, ["Content-Type": "application/json"], body: #"{"name": "cup", "unit_price": 3}"#)
        ])
        do {
            let shop = ServiceClient(Shop(), transport: transport)
            let product = try await ProductRequest(id: 7).schedule(with: shop)
            #expect(product == Product(name: "cup", unitPrice: 3))
            #expect(try await ProductRequest(id: 7).schedule(with: shop) == product)
        }
        #expect(transport.sent.count == 1)
        let sent = try #require(transport.sent.first?.request)
        #expect(sent.url?.absoluteString == "https://api.example.com/products/7?lang=en")
        #expect(sent.value(forHTTPHeaderField: "X-API-Key") == "k")
    }

    @Test("From Echo: a proxy with a cache and a retrier in one line")
    func echo() async throws {
        let server = try LoopbackServer.start { request in
            if request.number == 0 { return LoopbackReply(503) }
            return LoopbackReply(
                200,
                fields: [("Content-Type", "application/json"), ("Cache-Control", "max-age=60")],
                body: "[0,1,1,2,3,5,8,13]"
            )
        }
        let (baseURL, count) = (server.url("/"), 8)
        let proxy = WebServiceProxy(
            session: URLSession.shared,
            baseURL: baseURL,
            cache: .default,
            retrierFactory: .default
        )
        let numbers: [Int] = try await proxy.invoke(.get, path: "test/fibonacci", arguments: ["count": count])
        #expect(numbers == [0, 1, 1, 2, 3, 5, 8, 13])
        #expect(server.requests.map(\.target) == ["/test/fibonacci?count=8", "/test/fibonacci?count=8"])
    }

    enum Settings {
        static var accountsURL: URL { URL(filePath: "/") }
    }

    struct AccountService: WebService {
        static let shared = ServiceClient(AccountService(), cache: .default, retrierFactory: .default)
        var baseURL = Settings.accountsURL
        let tokens = TokenHolder()
        var authorization: Authorization { get async { await tokens.authorization } }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = AccountService
        let path = "status"
    }

    struct Login: InOutEndpoint {
        typealias Service = AccountService
        static let method = Method.post
        struct Input: Encodable { let username: String; let password: String }
        struct Output: Decodable { let token: String }
        let path = "login"
    }

    actor TokenHolder {
        private var token: String?
        var authorization: Authorization { token.map { .bearer($0) } ?? .none }
        func keep(_ token: String) { self.token = token }
    }

    @Test("From Decree: the endpoints of its page, and the login's token in the next call")
    func decree() async throws {
        let transport = ScriptedTransport([.respond(200, body: #"{"token": "t"}"#), .respond(204)])
        let base = try #require(URL(string: "https://example.com/api/v1"))
        let client = ServiceClient(AccountService(baseURL: base), transport: transport)
        do {
            let output = try await Login().makeRequest(to: client, with: .init(username: "u", password: "p"))
            await client.service.tokens.keep(output.token)
        } catch let error as EndpointError {
            print(error.alertMessage)
        }
        try await AccountService.withShared(client) { try await CheckStatus().makeRequest() }
        let sent = transport.sent.map(\.request)
        #expect(
            sent.map(\.url?.absoluteString) == [
                "https://example.com/api/v1/login", "https://example.com/api/v1/status",
            ]
        )
        #expect(sent.last?.value(forHTTPHeaderField: "Authorization") == "Bearer t")
    }
}
