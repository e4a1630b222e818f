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

@Suite("Parts stored, combined and completed (RFC 9111 §3.3, §3.4)", .timeLimit(.minutes(20)))
struct StoredPartTests {
    @Test("A 206 is stored and reused, and answers ranges within it", arguments: StoreKind.allCases)
    func replayed(_ kind: StoreKind) async throws {
        let origin = RangeOrigin()
        try await kind.withBench(origin) { bench in
            let first = try await bench.range("20-39")
            #expect(first == .network(origin.bytes(20..<40), 206))
            #expect(try await bench.range("20-39") == .fresh(origin.bytes(20..<40), 206))
            #expect(try await bench.range("25-29,36-39").body == origin.bytes(25..<40))
            #expect(try await bench.range("30-30") == .fresh(origin.bytes(30..<31), 206))
            #expect(try await bench.range("100-") == .fresh("", 416))
            #expect(bench.sends == 1)
            #expect(bench.sent("Accept-Encoding") == ["identity"])
        }
    }

    struct Join: Sendable, CustomTestStringConvertible {
        /// What is loaded one after another; nil: the whole.
        var loads: [String?]
        /// The Range and If-Range of what was sent.
        var sent: [String?]
        var conditions: [String?]
        var testDescription: String { loads.map { $0 ?? "whole" }.joined(separator: " ") }
    }

    static let joins: [Join] = [
        Join(loads: ["0-49", nil], sent: ["bytes=0-49", "bytes=50-99"], conditions: [nil, "\"1\""]),
        Join(loads: ["50-99", nil], sent: ["bytes=50-99", "bytes=0-49"], conditions: [nil, "\"1\""]),
        Join(
            loads: ["0-9", "90-99", nil],
            sent: ["bytes=0-9", "bytes=90-99", "bytes=10-89"],
            conditions: [nil, "\"1\"", "\"1\""]
        ),
        Join(loads: ["40-49", nil], sent: ["bytes=40-49", "bytes=0-99"], conditions: [nil, "\"1\""]),
        Join(loads: ["0-9", "10-19", "0-19"], sent: ["bytes=0-9", "bytes=10-19"], conditions: [nil, "\"1\""]),
        Join(loads: ["0-9", "5-14", "0-14"], sent: ["bytes=0-9", "bytes=10-14"], conditions: [nil, "\"1\""]),
        Join(loads: ["10-19", "5-24"], sent: ["bytes=10-19", "bytes=5-24"], conditions: [nil, "\"1\""]),
        Join(
            loads: ["0-9", "20-29", "0-29"],
            sent: ["bytes=0-9", "bytes=20-29", "bytes=10-19"],
            conditions: [nil, "\"1\"", "\"1\""]
        ),
        Join(loads: ["-10", "80-"], sent: ["bytes=-10", "bytes=80-89"], conditions: [nil, "\"1\""]),
        Join(loads: ["0-9", "5-"], sent: ["bytes=0-9", "bytes=10-99"], conditions: [nil, "\"1\""]),
    ]

    @Test("Parts are combined, and a gap is filled by one request with If-Range", arguments: StoreKind.allCases, joins)
    func joined(_ kind: StoreKind, _ item: Join) async throws {
        let origin = RangeOrigin()
        try await kind.withBench(origin) { bench in
            for _ in 0..<2 {
                for load in item.loads {
                    let answer = try await bench.range(load)
                    let interval = load.flatMap {
                        RangeRequest(parsing: "bytes=" + $0)?.ranges[0].resolved(completeLength: 100)
                    }
                    let range = interval.map { Int($0.lowerBound)..<Int($0.upperBound) }
                    #expect(answer.body == origin.bytes(range))
                    #expect(answer.status == (load == nil ? 200 : 206))
                }
                // The second time all of it is there.
                #expect(bench.sent("Range") == item.sent)
                #expect(bench.sent("If-Range") == item.conditions)
            }
            #expect(bench.cache.store.statistics.entryCount == 1)
        }
    }

    @Test(
        "A combined response has the fields of one response: the whole's length, the part's age",
        arguments: StoreKind.allCases
    )
    func fields(_ kind: StoreKind) async throws {
        let origin = RangeOrigin { $0.fields["Age"] = "5" }
        try await kind.withBench(origin) { bench in
            try await bench.range("0-9")
            bench.clock.advance(by: .seconds(20))
            origin.change { $0.fields["X-New"] = "yes" }
            let whole = try await bench.pipeline.send(.get())
            #expect(whole.status == .ok)
            #expect(whole.fields["Content-Length"] == "100")
            #expect(whole.fields["Content-Range"] == nil)
            #expect(whole.body.length == 100)
            #expect(whole.fields["X-New"] == "yes")
            #expect(try await whole.body.collect().count == 100)
            #expect(whole.fields["ETag"] == "\"1\"")
            // Dated at the start of the clock, so that 20 seconds of age can be seen.
            #expect(whole.fields["Age"] == "20")
            #expect(bench.cache.statistics.networkBytes == 100)
            #expect(bench.cache.statistics.misses == 2)
            #expect(bench.cache.statistics.stored == 2)
        }
    }

    @Test(
        "Of a completed response, only what the exchange brought is delivered from the network",
        arguments: [
            (["0-9", "5-14"], 15), (["10-19", "5-24"], 30), (["0-9", "5-"], 100), (["40-49", nil], 110),
            (["0-9", "90-99", nil], 100),
        ] as [([String?], Int)]
    )
    func delivered(_ loads: [String?], _ count: Int) async throws {
        let bench = CacheBench(RangeOrigin().transport)
        for load in loads { try await bench.range(load) }
        #expect(bench.cache.statistics.networkBytes == count)
    }

    @Test("A stale part is revalidated before use, and completed without a separate validation")
    func stale() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        origin.change { $0.fields["Cache-Control"] = "max-age=600" }
        bench.clock.advance(by: .seconds(61))
        let again = try await bench.range("0-4")
        #expect(again.body == origin.bytes(0..<5))
        #expect(again.status == 206)
        #expect(again.source == .revalidated)
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sent("If-None-Match") == [nil, "\"1\"", nil])
        #expect(bench.sent("If-Range") == [nil, nil, "\"1\""])
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=0-4", "bytes=10-99"])
    }

    @Test(
        "Parts without a strong validator are reused and never combined (RFC 9110 §15.3.7.3)",
        arguments: [true, false]
    )
    func notJoined(_ isWeak: Bool) async throws {
        let origin = RangeOrigin { $0.validator = isWeak ? .weak : .none }
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        #expect(try await bench.range("0-9").source == .fresh)
        try await bench.range("10-19")
        #expect(try await bench.range("0-19") == .network(origin.bytes(0..<20), 206))
        #expect(try await bench.range(nil) == .network(origin.bytes()))
        #expect(bench.sent("If-Range") == [nil, nil, nil, nil])
    }

    @Test("RFC 9111 §4.3.4: a 304 freshens a part with a weak tag too")
    func weakPartConfirmed() async throws {
        let origin = RangeOrigin { $0.validator = .weak }
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        origin.change { $0.fields["Cache-Control"] = "max-age=600" }
        bench.clock.advance(by: .seconds(61))
        #expect(try await bench.range("0-9").source == .revalidated)
        #expect(try await bench.range("0-9") == .fresh(origin.bytes(0..<10), 206))
    }

    @Test("Parts are combined by a strong Last-Modified too")
    func byDate() async throws {
        let origin = RangeOrigin { $0.validator = .date }
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sent("If-Range") == [nil, "Tue, 14 Nov 2023 20:00:01 GMT"])
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
    }

    @Test("The length of the whole may be unknown until a part gives it")
    func unknownLength() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-9/*"]
        origin.change {
            $0.instead = .respond(
                206,
                fields,
                body: RangeOrigin.slice(RangeOrigin.content(version: 1, length: 100), 0..<10)
            )
        }
        try await bench.range("0-9")
        #expect(try await bench.range("2-5") == .fresh(origin.bytes(2..<6), 206))
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=10-"])
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
    }

    @Test("A HEAD does not affect a part of the same content, and removes one of other content")
    func head() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        #expect(try await bench.load(.request("HEAD", "http://origin.example/a")).status == 200)
        #expect(try await bench.range("0-9").source == .fresh)
        origin.change { $0.length = 200 }
        try await bench.load(.request("HEAD", "http://origin.example/a"))
        #expect(try await bench.range("0-9").source == .network(attempts: 1))
        #expect(bench.sends == 4)
    }

    @Test("A part of a response that is stored whole updates fields but no bytes")
    func partOfWhole() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range(nil)
        origin.change { $0.fields["X-New"] = "yes" }
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=0-9"]), .reloading)
        let whole = try await bench.pipeline.send(.get())
        #expect(whole.source == .fresh)
        #expect(whole.fields["X-New"] == "yes")
        #expect(whole.fields["Content-Length"] == "100")
        #expect(try await whole.body.collect().count == 100)
        #expect(bench.sends == 2)
    }

    @Test("With no-store no part is stored, and with reload none is read")
    func directives() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9", ["Cache-Control": "no-store"])
        #expect(bench.cache.store.statistics.entryCount == 0)
        try await bench.range("0-9")
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=0-9"]), .reloading)
        #expect(bench.sends == 3)
        origin.change { $0.fields["Cache-Control"] = "no-store" }
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sent("Range").suffix(2) == ["bytes=10-99", "bytes=10-99"])
    }
}

extension CallOptions {
    static var reloading: CallOptions {
        var options = CallOptions()
        options.cache = .reload
        return options
    }
}
