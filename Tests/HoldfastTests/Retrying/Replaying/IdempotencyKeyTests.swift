// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("RETRY.md §3.4: Idempotency-Key", .timeLimit(.minutes(20)))
struct IdempotencyKeyTests {
    private static let rules: RetryRules = {
        var rules = RetryRules()
        rules.mintsIdempotencyKey = true
        return rules
    }()

    private func keys(
        _ transport: ScriptedTransport,
        _ request: URLRequest,
        rules: RetryRules = rules,
        options: CallOptions = CallOptions()
    ) async throws -> [String?] {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let pipeline = Pipeline(transport: transport, retrierFactory: .backoff(rules), configuration: configuration)
        _ = try await pipeline.send(request, body: .data(Data("x".utf8)), options: options)
        return transport.sent.map { $0.request.value(forHTTPHeaderField: "Idempotency-Key") }
    }

    @Test("A key is a structured-field String with a version 4 UUID, different for each seed")
    func form() {
        var seen: Set<String> = []
        for seed in 0..<200 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let key = IdempotencyKey(using: &generator)
            let pattern = /"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"/
            #expect(key.fieldValue.wholeMatch(of: pattern) != nil, "seed \(seed): \(key.fieldValue)")
            #expect(UUID(uuidString: key.text) != nil)
            seen.insert(key.text)
        }
        #expect(seen.count == 200)
    }

    @Test("Extreme random numbers give a valid key too", arguments: [0, .max] as [UInt64])
    func extremes(_ value: UInt64) {
        struct Constant: RandomNumberGenerator {
            let value: UInt64
            mutating func next() -> UInt64 { value }
        }
        var generator = Constant(value: value)
        let key = IdempotencyKey(using: &generator)
        #expect(
            key.text
                == (value == 0
                    ? "00000000-0000-4000-8000-000000000000" : "ffffffff-ffff-4fff-bfff-ffffffffffff")
        )
    }

    @Test("One key for all attempts of a call, another for the next call", arguments: ["POST", "PATCH", "post"])
    func attempts(_ method: String) async throws {
        let step = ScriptedTransport.Step.fail(.connect, progress: .notSent)
        let transport = ScriptedTransport([step, step, .respond(), step, .respond()])
        let request = URLRequest.request(method, "http://origin.example/a")
        let first = try await keys(transport, request)
        #expect(first.count == 3)
        #expect(Set(first).count == 1)
        #expect(first.allSatisfy { $0 != nil })
        let both = try await keys(transport, request)
        #expect(Set(both[3...]).count == 1)
        #expect(both[3] != both[0])
    }

    @Test("The caller's key is never changed")
    func own() async throws {
        let transport = ScriptedTransport([.fail(.connect, progress: .notSent), .respond()])
        let request = URLRequest.request("POST", "http://origin.example/a", ["idempotency-key": "mine"])
        #expect(try await keys(transport, request) == ["mine", "mine"])
    }

    @Test("An idempotent method gets no key, nor does any request if the rules generate none")
    func none() async throws {
        for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"] {
            let request = URLRequest.request(method, "http://origin.example/a")
            #expect(try await keys(ScriptedTransport([.respond()]), request) == [nil])
        }
        let request = URLRequest.request("POST", "http://origin.example/a")
        #expect(try await keys(ScriptedTransport([.respond()]), request, rules: .default) == [nil])
    }

    @Test("§3.5: kept on a redirect within the origin, dropped across origins and if a 303 drops the content")
    func redirects() async throws {
        let request = URLRequest.request("POST", "http://origin.example/a")
        let cases: [(status: Int, location: String, keeps: Bool)] = [
            (307, "/b", true), (308, "http://origin.example:80/c", true), (307, "http://other.example/b", false),
            (303, "/b", false),
        ]
        for (status, location, keeps) in cases {
            let transport = ScriptedTransport([.respond(status, ["Location": location]), .respond()])
            let keys = try await keys(transport, request)
            #expect(keys.count == 2)
            #expect(keys[0] != nil)
            #expect(keys[1] == (keeps ? keys[0] : nil), "\(status) to \(location)")
        }
    }

    @Test("The rules of a call override the pipeline's")
    func perCall() async throws {
        var options = CallOptions()
        options.retrierFactory = .backoff(.default)
        let request = URLRequest.request("POST", "http://origin.example/a")
        #expect(try await keys(ScriptedTransport([.respond()]), request, options: options) == [nil])
    }
}
