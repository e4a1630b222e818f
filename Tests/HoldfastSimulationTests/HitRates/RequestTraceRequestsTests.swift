// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSemantics
import HoldfastSimulation
import HoldfastStorage
import Testing

@Suite("Traces of requests")
struct RequestTraceRequestsTests {
    private func head(_ url: String, _ method: RequestMethod = .get, _ fields: HeaderFields = [:]) throws -> RequestHead
    {
        RequestHead(method: method, target: try TargetURI(url), fields: fields)
    }

    @Test("Two requests have one key if the cache would look both up under one key")
    func keys() throws {
        var trace = RequestTrace()
        for url in ["https://a.example/x", "https://A.example:443/x#part", "https://a.example/y", "http://a.example/x"]
        {
            let isKept = trace.append(try head(url), bodyLength: 10)
            #expect(isKept)
        }
        #expect(trace.requests.map(\.key) == [0, 0, 1, 2])
        trace.append(try head("https://a.example/x"), bodyLength: 10, principal: "p")
        #expect(trace.keyCount == 4)
    }

    @Test("The rules for keys apply, and each variant has its own key")
    func rulesAndVariants() throws {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(hosts: ["https://a.example"], paths: ["/x"], query: QueryOptions(ignoredNames: ["utm"])),
            try CacheRule(paths: ["/fields"], keyFields: ["Accept-Language"]),
        ]
        var trace = RequestTrace()
        for url in ["https://a.example/x?utm=1", "https://a.example/x?utm=2"] {
            trace.append(try head(url), bodyLength: 10, options: options)
        }
        #expect(trace.keyCount == 1)
        for language in ["de", "en", "de"] {
            let request = try head("https://a.example/v", .get, ["Accept-Language": language])
            let variant = try #require(
                NominatedFields(vary: ["Vary": "Accept-Language"], request: request.fields, secret: [1])
            )
            trace.append(request, bodyLength: 10, variant: variant)
        }
        #expect(trace.requests.map(\.key) == [0, 0, 1, 2, 1])
        for language in ["de", "en", "de"] {
            let request = try head("https://a.example/fields", .get, ["Accept-Language": language])
            trace.append(request, bodyLength: 10, options: options)
        }
        #expect(trace.requests.map(\.key) == [0, 0, 1, 2, 1, 3, 4, 3])
    }

    @Test("Only GET is added; lengths out of range become the nearest valid one")
    func limits() throws {
        var trace = RequestTrace()
        for method in [RequestMethod.head, .post, .query, .delete] {
            let isKept = trace.append(try head("https://a.example/", method), bodyLength: 1)
            #expect(!isKept)
        }
        trace.append(try head("https://a.example/"), bodyLength: .max)
        trace.append(try head("https://a.example/y"), bodyLength: -1)
        #expect(trace.requests.map(\.size) == [.max, 0])
    }

    @Test("Times and lifetimes reach the simulator: a stale copy is revalidated")
    func lives() throws {
        var trace = RequestTrace()
        for second: Int64 in [0, 5, 20] {
            trace.append(
                try head("https://a.example/"),
                bodyLength: 10,
                at: Timestamp(secondsSinceEpoch: second),
                freshUntil: Timestamp(secondsSinceEpoch: second + 10)
            )
        }
        var simulator = HitRateSimulator()
        simulator.add(.lru, capacity: 100)
        simulator.replay(trace)
        #expect(simulator.results[0].hits == 1 && simulator.results[0].revalidations == 1)
    }
}
