// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("DictionaryStore passes the store conformance suite", .timeLimit(.minutes(20)))
struct DictionaryStoreTests {
    static let stores = StoreFactory("dictionary") { capacity in
        StoreSubject(DictionaryStore(capacity: capacity))
    }

    @Test(arguments: StoreConformance.laws)
    func law(_ law: StoreConformance.Law) async {
        let findings = await law.findings(of: Self.stores)
        #expect(findings.isEmpty, "\(findings)")
    }
}

@Suite("The page on writing a store", .timeLimit(.minutes(20)))
struct WritingAStorePageTests {
    @Test("A cache over the page's store answers from it, and removed entries are fetched again")
    func cache() async throws {
        let transport = ScriptedTransport(
            [.respond(200, ["Cache-Control": "max-age=60"], body: "hello")],
            repeatsLastStep: true
        )
        let cache = HTTPCache(store: DictionaryStore(capacity: 32 << 20))
        let client = Pipeline(transport: transport, cache: cache)
        let url = try #require(URL(string: "http://origin.example/a"))
        for _ in 1...4 {
            #expect(try await client.data(for: URLRequest(url: url)).0 == Data("hello".utf8))
            await client.drain()
        }
        #expect(transport.sent.count == 1 && cache.statistics.hits == 3)
        try await cache.remove(.url(url))
        _ = try await client.data(for: URLRequest(url: url))
        #expect(transport.sent.count == 2)
        await client.drain()
        await cache.close()
    }
}
