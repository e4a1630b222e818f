// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Authorization: a credential identifies its owner, in any field", .timeLimit(.minutes(20)))
struct CredentialPartitionTests {
    /// An origin that tells each caller its own key, and refuses those that it is told to refuse.
    private static func origin(refusing key: String = "", vary: Bool = false) -> ScriptedTransport {
        ScriptedTransport { request in
            let own = request.value(forHTTPHeaderField: "X-Api-Key") ?? "nobody"
            if own == key, request.url?.path == "/refused" { return .respond(401) }
            var fields: HeaderFields = ["Cache-Control": "private, max-age=600"]
            if vary { fields.append("Vary", "X-Api-Key") }
            return .respond(200, fields, body: own)
        }
    }

    private static func keys(
        _ first: String?,
        then next: String = "B",
        principal: String? = nil
    ) -> AuthorizationRefresh {
        AuthorizationRefresh(
            credential: first,
            for: ["http://origin.example"],
            principal: principal,
            apply: { key, request in
                request.setValue(key, forHTTPHeaderField: "X-Api-Key")
                // Differs from call to call and says nothing of whose it is.
                request.setValue(UUID().uuidString, forHTTPHeaderField: "X-Request-ID")
            },
            refresh: { _ in next }
        )
    }

    private static func pipeline(
        _ transport: ScriptedTransport,
        _ keys: AuthorizationRefresh,
        cache: HTTPCache
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        configuration.authorization = keys
        return Pipeline(transport: transport, cache: cache, configuration: configuration)
    }

    @Test("After a refresh key B does not get what was stored for key A, nor does another pipeline with the same cache")
    func apart() async throws {
        let transport = Self.origin(refusing: "A")
        let cache = HTTPCache.inMemory()
        let pipeline = Self.pipeline(transport, Self.keys("A"), cache: cache)
        #expect(try await pipeline.send(.get()).read == "A")
        let again = try await pipeline.send(.get())
        #expect(again.source == .fresh)
        #expect(try await again.read == "A")
        let other = Self.pipeline(transport, Self.keys("B"), cache: cache)
        #expect(try await other.send(.get()).read == "B")
        #expect(try await pipeline.send(.get("http://origin.example/refused")).read == "B")
        #expect(try await pipeline.send(.get()).read == "B")
        let anonymous = Pipeline(transport: transport, cache: cache)
        #expect(try await anonymous.send(.get()).read == "nobody")
    }

    @Test("A credential that must first be requested identifies its owner too")
    func obtained() async throws {
        let cache = HTTPCache.inMemory()
        for key in ["A", "B"] {
            let pipeline = Self.pipeline(Self.origin(), Self.keys(nil, then: key), cache: cache)
            #expect(try await pipeline.send(.get()).read == key)
            let again = try await pipeline.send(.get())
            #expect(again.source == .fresh)
            #expect(try await again.read == key)
        }
    }

    @Test("An explicit principal stays the partition's name, whatever the key", arguments: ["A", nil])
    func principal(_ first: String?) async throws {
        let cache = HTTPCache.inMemory()
        let pipeline = Self.pipeline(Self.origin(), Self.keys(first, then: "A", principal: "alice"), cache: cache)
        #expect(try await pipeline.send(.get()).read == "A")
        let other = Self.pipeline(Self.origin(), Self.keys("B", principal: "alice"), cache: cache)
        #expect(try await other.send(.get()).read == "A")
    }

    @Test(
        "No store contains the key that Vary nominates, whether it is known from the start or not",
        arguments: ["secret-key", nil]
    )
    func digested(_ first: String?) async throws {
        let cache = HTTPCache.inMemory()
        let keys = Self.keys(first, then: "secret-key", principal: "alice")
        let pipeline = Self.pipeline(Self.origin(vary: true), keys, cache: cache)
        for _ in 1...2 { #expect(try await pipeline.send(.get()).read == "secret-key") }
        var nominated: [NominatedField] = []
        for try await entry in cache.entries() { nominated += entry.nominated }
        #expect(!nominated.isEmpty)
        #expect(nominated.allSatisfy { $0.value.text == nil })
    }
}
