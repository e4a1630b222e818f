// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Cookies that change with every response do not make every request a miss", .timeLimit(.minutes(20)))
struct ChangingCookieTests {
    /// What a client sends beside the cookie of the load balancer.
    enum Client: String, CaseIterable, Sendable {
        case plain, session, analytics
    }

    /// The cookies of one client, as it sends them back.
    private struct Jar {
        private var cookies: [(name: String, value: String)] = []

        var field: String? {
            cookies.isEmpty ? nil : cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
        }

        mutating func set(_ name: String, _ value: String) {
            cookies.removeAll { $0.name == name }
            cookies.append((name, value))
        }

        /// As URLSession does: what comes from a cache above it never passes its cookies.
        mutating func keep(_ response: Response) {
            guard case .network = response.source else { return }
            for line in response.fields.values(of: .setCookie) {
                let pair = line.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1)
                if pair.count == 2 { set(String(pair[0]), String(pair[1])) }
            }
        }
    }

    /// How many of 100 calls, 20 URLs in 5 rounds, were hits, and why the others were none.
    private func hits(_ client: Client, _ bench: CacheBench) async throws -> (hits: Int, misses: [CacheReason]) {
        var jar = Jar()
        if client != .plain { jar.set("sid", "7f3a") }
        var (calls, misses) = (0, [CacheReason]())
        for _ in 0..<5 {
            for page in 0..<20 {
                calls += 1
                if client == .analytics {
                    jar.set("_ga_K1", "GS1.1.\(calls)")
                    jar.set("_clsk", "1x|\(calls)|1")
                }
                var request = URLRequest.get("http://shop.example/page/\(page)")
                request.setValue(jar.field, forHTTPHeaderField: "Cookie")
                let response = try await bench.pipeline.send(request)
                jar.keep(response)
                _ = try await response.body.collect()
                let decision = try #require(response.cacheDecision)
                if decision.outcome != .hit { misses.append(decision.reason) }
            }
        }
        #expect(bench.sends == misses.count)
        return (calls - bench.sends, misses)
    }

    private func bench(_ change: (inout CacheOptions) -> Void = { _ in }) -> CacheBench {
        let numbers = AnswerNumbers()
        let transport = ScriptedTransport { _ in
            let number = numbers.next()
            let fields: HeaderFields = [
                "Cache-Control": "max-age=600", "Set-Cookie": "AWSALB=\(number)+/=; Path=/",
                "set-cookie": "AWSALBCORS=\(number)+/=; Path=/; SameSite=None; Secure",
            ]
            return .respond(200, fields, body: "\(number)")
        }
        return CacheBench(transport) { _ in
        } options: {
            change(&$0)
        }
    }

    @Test(
        "20 URLs, 5 rounds, a new AWSALB in every response: every possible hit is a hit",
        arguments: Client.allCases
    )
    func ignored(_ client: Client) async throws {
        let (hits, misses) = try await hits(client, bench())
        #expect(hits == 80)
        #expect(misses.allSatisfy { $0 == .notStored })
    }

    @Test(
        "With an empty list the same load misses, and the decision names the partition as the reason",
        arguments: Client.allCases
    )
    func counted(_ client: Client) async throws {
        let (hits, misses) = try await hits(client, bench { $0.ignoredCookies = [] })
        // The first response alone was to a client without cookies, and is lent to those with some.
        #expect(hits == (client == .plain ? 4 : 0))
        // Of the URLs of the first round nothing was stored before; two that share a slot of the table lose their hints.
        #expect(misses.prefix(20).allSatisfy { $0 == .notStored })
        #expect(misses.dropFirst(20).count { $0 == .otherPrincipal } >= 60)
    }
}
