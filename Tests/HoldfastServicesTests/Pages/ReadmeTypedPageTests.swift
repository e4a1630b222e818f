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

/// The code of docs/recipes.md on typed requests.
@Suite("Page: Recipes, typed requests", .timeLimit(.minutes(20)))
struct ReadmeTypedPageTests {
    struct Shop: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com" }
    }

    struct Product: Decodable { let name: String }

    struct ProductRequest: JsonRequest {
        typealias Result = Product
        let id: Int
        var routes: HttpRoute { ["products", id] }
    }

    /// Asks a host that tests do not reach, so it is compiled and not called.
    private func fetch() async throws -> Product {
        let shop = ServiceClient(Shop(), cache: .default, retrierFactory: .default)
        let product = try await ProductRequest(id: 7).schedule(with: shop)
        return product
    }

    @Test("A request that knows its result type")
    func typed() async throws {
        let transport = ScriptedTransport([.respond(200, body: #"{"name":"hat"}"#)])
        let shop = ServiceClient(Shop(), transport: transport)
        #expect(try await ProductRequest(id: 7).schedule(with: shop).name == "hat")
        #expect(transport.sent.first?.request.url?.absoluteString == "https://api.example.com/products/7")
    }

    @Test("Without declaring anything")
    func proxy() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Content-Type", "application/json")], body: "[0, 1, 1, 2, 3, 5, 8, 13]")
        }
        let url = server.url()
        let proxy = WebServiceProxy(session: .shared, baseURL: url, cache: .default)
        let numbers: [Int] = try await proxy.invoke(.get, path: "test/fibonacci", arguments: ["count": 8])
        #expect(numbers == [0, 1, 1, 2, 3, 5, 8, 13])
        #expect(server.requests.map(\.target) == ["/test/fibonacci?count=8"])
    }
}
