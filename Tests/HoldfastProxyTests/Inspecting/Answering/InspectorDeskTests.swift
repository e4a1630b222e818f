// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("What the inspector answers", .timeLimit(.minutes(20)))
    struct InspectorDeskTests {
        @Test(
            "Every answer forbids caching, framing, content sniffing, referrers and use by other origins",
            arguments: [
                "/", "/api/summary", "/api/calls", "/api/entries", "/api/entry?id=1", "/api/purge", "/nothing", "*", "",
            ]
        )
        func securityFields(target: String) async {
            let fields = await InspectorBench().desk.answer(.page(.get, target)).fields
            #expect(fields["Cache-Control"] == "no-store")
            #expect(fields["X-Content-Type-Options"] == "nosniff")
            #expect(fields["Referrer-Policy"] == "no-referrer")
            #expect(fields["X-Frame-Options"] == "DENY")
            #expect(fields["Cross-Origin-Resource-Policy"] == "same-origin")
            let policy = fields["Content-Security-Policy"] ?? ""
            #expect(policy.hasPrefix("default-src 'none'; "))
            #expect(policy.contains("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe"))
            #expect(!fields.contains { $0.name.canonicalName.hasPrefix("access-control-") })
        }

        @Test(
            "The query routes answer only queries",
            arguments: ["POST", "PUT", "DELETE", "OPTIONS", "get"]
        )
        func methods(method: String) async {
            for target in ["/", "/api/summary", "/api/calls", "/api/entries", "/api/entry?id=1"] {
                let response = await InspectorBench().desk.answer(.page(RequestMethod(rawValue: method), target))
                #expect(response.status == 405)
                #expect(response.fields["Allow"] == "GET, HEAD")
            }
        }

        @Test("The page has the token, and a refusal does not")
        func page() async throws {
            let bench = InspectorBench()
            let page = String(decoding: try await bench.desk.answer(.page(.get, "/?x=1")).body.collect(), as: UTF8.self)
            #expect(page.contains("content=\"\(InspectorBench.word)\""))
            let refusal = await bench.desk.answer(.page(.get, "/", ["Host": "evil.example:9090"]))
            #expect(!String(decoding: try await refusal.body.collect(), as: UTF8.self).contains(InspectorBench.word))
        }

        @Test("The summary has totals, reasons with their clauses, and the store")
        func summary() async throws {
            let bench = InspectorBench(options: CacheOptions.shared)
            try await bench.load("http://origin.example/a")
            for _ in 0..<3 { try await bench.load("http://origin.example/a") }
            let summary = try await bench.object("/api/summary")
            let totals = try #require(summary["totals"] as? [String: Any])
            #expect(totals["requests"] as? Int == 4)
            #expect(totals["hits"] as? Int == 3)
            #expect(totals["misses"] as? Int == 1)
            #expect(totals["hitRatio"] as? Double == 0.75)
            #expect(totals["bytesSaved"] as? Int == 6)
            #expect(summary["isShared"] as? Bool == true)
            let reasons = try #require(summary["reasons"] as? [[String: Any]])
            #expect(reasons.first?["code"] as? String == "not-stored")
            #expect(reasons.first?["section"] as? String == "RFC 9111 §4")
            let series = try #require(summary["seconds"] as? [String: [Int]])
            #expect(series.values.allSatisfy { $0.count == 300 })
            #expect(series["hits"]?.last == 3)
            let minutes = try #require(summary["minutes"] as? [String: [Int]])
            #expect(minutes.values.allSatisfy { $0.count == 60 })
            #expect(minutes["hits"]?.last == 3)
            #expect((summary["store"] as? [String: Any])?["entries"] as? Int == 1)
        }

        @Test("An origin is listed with its budget balance, its gate and its circuit")
        func origins() async throws {
            let bench = InspectorBench(retrierFactory: .default) { _ in .respond(503, ["Retry-After": "7"]) }
            try await bench.load("http://origin.example/a")
            var event = ServiceEvent(.circuitOpened, callID: CallID(number: 1), timestamp: bench.clock.timestamp)
            event.detail = "http://origin.example"
            event.delay = .seconds(30)
            bench.model.observe(event)
            let origins = try #require(try await bench.object("/api/summary")["origins"] as? [[String: Any]])
            // What no origin of its own has is listed only if there is any.
            #expect(origins.count == 1)
            let origin = try #require(origins.first)
            #expect(origin["origin"] as? String == "http://origin.example")
            #expect(origin["circuitOpensIn"] as? Double == 30)
            let retries = try #require(origin["retries"] as? [String: Any])
            let governor = try #require(bench.desk.governor)
            let url = try #require(URL(string: "http://origin.example"))
            let status = try #require(
                governor.status(of: url, now: bench.clock.now)
            )
            #expect(retries["balance"] as? Int == status.balance)
            #expect(retries["failedAttempts"] as? Int == status.counts.failedAttempts)
            #expect(status.counts.failedAttempts > 0)
            bench.clock.advance(by: .seconds(31))
            let later = try #require(try await bench.object("/api/summary")["origins"] as? [[String: Any]])
            #expect(later.first?["circuitOpensIn"] as? Double == 0)
        }

        @Test("Calls are listed from a given number on")
        func calls() async throws {
            let bench = InspectorBench()
            for path in ["a", "b", "a"] { try await bench.load("http://origin.example/\(path)") }
            let all = try await bench.object("/api/calls?after=0")
            let calls = try #require(all["calls"] as? [[String: Any]])
            #expect(calls.map { $0["url"] as? String } == ["a", "b", "a"].map { "http://origin.example/\($0)" })
            #expect(calls.first?["source"] as? String == "fresh")
            let later = try await bench.object("/api/calls?after=2")
            #expect((later["calls"] as? [[String: Any]])?.count == 1)
            for odd in ["-1", "x", "", "99999999999999999999999"] {
                let response = await bench.desk.answer(.page(.get, "/api/calls?after=\(odd)"))
                #expect(response.status == 400, "\(odd)")
            }
        }

        @Test("A failing store gives a plain answer without its path")
        func failingStore() async throws {
            let bench = InspectorBench()
            await bench.cache.close()
            let response = await bench.desk.answer(.page(.get, "/api/entries"))
            #expect(response.status == 500)
            #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == "The store failed: closed.\n")
        }
    }
#endif
