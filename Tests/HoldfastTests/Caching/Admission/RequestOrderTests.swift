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

/// Which of two responses is the newer one goes by the order of their requests, whatever the clock says and wherever they lie.
@Suite("The response that was requested later is newer", .timeLimit(.minutes(20)))
struct RequestOrderTests {
    private static let fresh: HeaderFields = ["Cache-Control": "max-age=60"]
    private static let variance: HeaderFields = ["No-Vary-Search": "params=(\"s\")"]
    private static let one = URLRequest.get("http://origin.example/a?s=1")
    private static let three = URLRequest.get("http://origin.example/a?s=3")

    private static func answer(_ text: String, _ more: HeaderFields = [:])
        -> @Sendable (URLRequest) -> ScriptedTransport.Step
    {
        { _ in .respond(200, fresh.merging(more), body: text) }
    }

    private static func head(_ fields: [String: String] = [:]) -> URLRequest {
        var request = URLRequest.get("http://origin.example/a", fields)
        request.httpMethod = "HEAD"
        return request
    }

    private static func options(_ directive: CacheDirective) -> CallOptions {
        var options = CallOptions()
        options.cache = directive
        return options
    }

    @Test("RFC 9111 §4: no call joins an exchange that is older than what was stored since")
    func joining() async throws {
        let bench = OrderBench([
            Self.answer("v1"), Self.answer("v2", ["Cache-Control": "max-age=1"]), Self.answer("v3"),
        ])
        let first = try await bench.begin(number: 1)
        _ = try await bench.end(2, try await bench.begin(.get(), .reload, number: 2))
        bench.clock.advance(by: .seconds(5))
        let third = Task { [pipeline = bench.pipeline] in
            String(decoding: try await pipeline.send(.get()).body.collect(), as: UTF8.self)
        }
        for _ in 0..<10_000 where bench.asked.count < 3 { await Task.yield() }
        #expect(bench.asked.count == 3)
        bench.gates[2].increment()
        #expect(try await bench.end(1, first) == "v1")
        #expect(try await third.value == "v3")
        #expect(try await bench.hit() == "v3")
    }

    @Test("No-Vary-Search: the newer of two equivalent responses is used, in whichever partition it is")
    func acrossPartitions() async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(200, Self.variance.merging(["Cache-Control": "public, max-age=60"]), body: "v1"),
                .respond(200, Self.variance.merging(["Cache-Control": "max-age=60"]), body: "v2"),
            ]),
            mode: .shared
        )
        let cookie = ["Cookie": "sid=alice"]
        let one = URLRequest.get("http://origin.example/a?s=1", cookie)
        let three = URLRequest.get("http://origin.example/a?s=3", cookie)
        try await bench.load(one)
        try await bench.load(three, Self.options(.revalidate))
        #expect(try await bench.load(one) == .fresh("v2"))
        #expect(try await bench.load(Self.one) == .fresh("v1"))
    }

    @Test("No-Vary-Search: the newer of two equivalent responses is used, whatever the older one varies by")
    func acrossVariants() async throws {
        let bench = CacheBench([
            .respond(200, Self.fresh.merging(Self.variance).merging(["Vary": "X-A"]), body: "v1"),
            .respond(200, Self.fresh.merging(Self.variance), body: "v2"),
        ])
        let one = URLRequest.get("http://origin.example/a?s=1", ["X-A": "a"])
        try await bench.load(one)
        // Twice, so that it is ready for plain requests as well.
        #expect(try await bench.load(one) == .fresh("v1"))
        #expect(try await bench.load(one) == .fresh("v1"))
        try await bench.load(.get("http://origin.example/a?s=3", ["X-A": "b"]))
        #expect(try await bench.load(one) == .fresh("v2"))
    }

    @Test("No-Vary-Search: a response for its own query only also removes the older equivalent one")
    func withoutVariance() async throws {
        let bench = CacheBench([
            .respond(200, Self.fresh.merging(Self.variance), body: "v1"), .respond(200, Self.fresh, body: "v2"),
        ])
        try await bench.load(Self.one)
        try await bench.load(Self.three, Self.options(.revalidate))
        #expect(try await bench.load(Self.three) == .fresh("v2"))
        #expect(try await bench.load(Self.one, Self.options(.onlyIfCached)).status == 504)
    }

    @Test("No-Vary-Search: an older equivalent response still in transfer is not stored")
    func equivalentUnderWay() async throws {
        let bench = OrderBench([Self.answer("v1", Self.variance), Self.answer("v2", Self.variance)])
        let first = try await bench.begin(Self.one, number: 1)
        _ = try await bench.end(2, try await bench.begin(Self.three, .reload, number: 2))
        _ = try await bench.end(1, first)
        #expect(try await bench.hit(Self.one) == "v2")
        #expect(try await bench.hit(Self.three) == "v2")
    }

    @Test("RFC 9111 §4.3.5: what a HEAD removed is not stored again by an older GET in progress")
    func removedByHead() async throws {
        let bench = OrderBench([
            Self.answer("v1", ["ETag": "\"1\"", "Cache-Control": "max-age=1"]), Self.answer("v1", ["ETag": "\"1\""]),
            { _ in .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"2\""]) },
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        bench.clock.advance(by: .seconds(5))
        let get = try await bench.begin(number: 2)
        _ = try await bench.end(3, try await bench.begin(Self.head(), .reload, number: 3))
        _ = try await bench.end(2, get)
        #expect(try await bench.hit() == nil)
    }

    @Test("RFC 9111 §4.3.5: a HEAD that was sent before a GET removes nothing of it, although the clock stands still")
    func headBeforeGet() async throws {
        let bench = OrderBench([
            Self.answer("v1", ["ETag": "\"1\""]),
            { _ in .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"0\""]) },
            Self.answer("v2", ["ETag": "\"2\""]),
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let head = try await bench.begin(Self.head(), .reload, number: 2)
        _ = try await bench.end(3, try await bench.begin(.get(), .reload, number: 3))
        _ = try await bench.end(2, head)
        #expect(try await bench.hit() == "v2")
    }

    @Test(
        "A user's HEAD removes what is stored for all if the HEAD says that it is for all",
        arguments: [true, false]
    )
    func headOfUser(isForAll: Bool) async throws {
        let control = isForAll ? "public, max-age=60" : "private, max-age=60"
        let bench = OrderBench(
            [
                Self.answer("v1", ["ETag": "\"1\""]),
                { _ in .respond(200, ["Cache-Control": control, "ETag": "\"2\""]) },
            ],
            mode: .shared
        )
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let head = Self.head(["Authorization": "alice"])
        _ = try await bench.end(2, try await bench.begin(head, .reload, number: 2))
        #expect(try await bench.hit() == (isForAll ? nil : "v1"))
    }

    @Test("A part that was requested later precedes an older whole response of another variant")
    func newerPart() async throws {
        let part: HeaderFields = ["ETag": "\"2\"", "Vary": "X-A", "Content-Range": "bytes 0-2/6"]
        let bench = OrderBench([
            Self.answer("abcdef", ["ETag": "\"1\""]), { _ in .respond(206, Self.fresh.merging(part), body: "ABC") },
            Self.answer("ABCDEF", ["ETag": "\"2\"", "Vary": "X-A"]),
        ])
        let whole = try await bench.begin(.get("http://origin.example/a", ["X-A": "1"]), number: 1)
        let two = URLRequest.get("http://origin.example/a", ["X-A": "2"])
        let range = URLRequest.get("http://origin.example/a", ["X-A": "2", "Range": "bytes=0-2"])
        _ = try await bench.end(2, try await bench.begin(range, .reload, number: 2))
        _ = try await bench.end(1, whole)
        bench.gates[2].increment()
        let response = try await bench.pipeline.send(two)
        #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == "ABCDEF")
    }

    @Test("After the clock is set back, an older variant does not count as newer")
    func clockSetBack() async throws {
        let bench = CacheBench([
            .respond(200, Self.fresh.merging(["Vary": "X-A"]), body: "v1"), .respond(200, Self.fresh, body: "v2"),
        ])
        let one = URLRequest.get("http://origin.example/a", ["X-A": "1"])
        try await bench.load(one)
        bench.clock.skewTimeOfDay(by: .seconds(-3_600))
        try await bench.load(.get("http://origin.example/a", ["X-A": "2"]))
        #expect(try await bench.load(one) == .fresh("v2"))
    }

    @Test("What another process with a fast clock requested is still updated")
    func observed() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=1", "ETag": "\"1\""], body: "v1"),
            .respond(304, Self.fresh.merging(["ETag": "\"1\""])),
        ])
        try await bench.load()
        let now = StoreInstant(bench.clock.timestamp)
        let entry = try #require(try await bench.cache.store.list(after: nil, limit: 10, now: now).listed.first?.entry)
        var stored = try #require(StoredResponse(decoding: entry.description.metadata))
        stored.requestOrder = HybridTimestamp(bench.clock.timestamp.advanced(by: .seconds(86_400)))
        var description = entry.description
        description.metadata = stored.encoded
        _ = try await bench.cache.store.replaceDescription(of: entry, with: description, now: now)
        bench.clock.advance(by: .seconds(5))
        #expect(try await bench.load() == .revalidated("v1"))
        #expect(try await bench.load() == .fresh("v1"))
    }

    // MARK: What came and is not kept

    @Test(
        "A 304 that finds an older response in the place of what it confirms also removes that one",
        arguments: ["200", "304"]
    )
    func lostConfirmation(_ way: String) async throws {
        let confirmed: @Sendable (String) -> ScriptedTransport.Step = {
            .respond(304, Self.fresh.merging(["ETag": "\"1\"", "X-From": $0]))
        }
        let bench = OrderBench([
            Self.answer("v1", ["ETag": "\"1\""]),
            { request in
                way == "200" ? Self.answer("v2", ["ETag": "\"2\""])(request) : confirmed("2")
            },
            { _ in confirmed("3") },
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let second = try await bench.begin(.get(), way == "200" ? .reload : .revalidate, number: 2)
        let third = try await bench.begin(.get(), .revalidate, number: 3)
        _ = try await bench.end(2, second)
        #expect(try await bench.end(3, third) == "v1")
        #expect(try await bench.hit() != "v2")
        let response = try await bench.pipeline.send(.get(), options: Self.options(.onlyIfCached))
        #expect(response.fields["X-From"] != "2")
        response.body.discard()
    }

    @Test("A newer response that is too large leaves no older one stored, and no call joins an older exchange")
    func tooLarge() async throws {
        let large = String(repeating: "x", count: 400_000)
        let bench = OrderBench([Self.answer("v1"), Self.answer("old"), Self.answer(large), Self.answer("v4")])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let second = try await bench.begin(.get(), .reload, number: 2)
        _ = try await bench.end(3, try await bench.begin(.get(), .reload, number: 3))
        #expect(try await bench.hit() == nil)
        _ = try await bench.end(2, second)
        #expect(try await bench.hit() == nil)
        _ = try await bench.end(4, try await bench.begin(number: 4))
        #expect(try await bench.hit() == "v4")
    }

    @Test("What an invalidation keeps out of the store does not let an older response in")
    func refusedByInvalidation() async throws {
        let bench = OrderBench([
            { _ in .stream(200, Self.fresh, chunks: ["v", "1"]) }, Self.answer("v2"), { _ in .respond(204) },
        ])
        let alice = URLRequest.get("http://origin.example/a", ["Authorization": "alice"])
        var change = URLRequest.get("http://origin.example/a", ["Authorization": "bob"])
        change.httpMethod = "POST"
        bench.gates[0].increment()
        let first = try await bench.pipeline.send(alice)
        let second = try await bench.begin(alice, .reload, number: 2)
        _ = try await bench.end(3, try await bench.begin(change, number: 3))
        _ = try await bench.end(2, second)
        _ = try await first.body.collect()
        await bench.pipeline.drain()
        #expect(try await bench.hit(alice) == nil)
    }

    @Test("A response still in transfer is newer than an exchange that began before it")
    func bodyUnderWay() async throws {
        let bench = OrderBench([
            Self.answer("v1"), { _ in .stream(200, Self.fresh, chunks: ["v", "2"]) }, Self.answer("v3"),
        ])
        let first = try await bench.begin(number: 1)
        bench.gates[1].increment()
        let second = try await bench.pipeline.send(.get(), options: Self.options(.reload))
        let third = Task { [pipeline = bench.pipeline] in
            String(decoding: try await pipeline.send(.get()).body.collect(), as: UTF8.self)
        }
        for _ in 0..<10_000 where bench.asked.count < 3 { await Task.yield() }
        #expect(bench.asked.count == 3)
        bench.gates[2].increment()
        _ = try await bench.end(1, first)
        _ = try await second.body.collect()
        #expect(try await third.value == "v3")
        #expect(try await bench.hit() == "v3")
    }

    @Test("Which request a response belongs to follows from what was sent, prepare steps included")
    func prepared() async throws {
        let clock = ManualClock()
        let gate = CountWatch()
        let numbers = AnswerNumbers()
        let transport = ScriptedTransport { _ in
            let number = numbers.next()
            if number == 1 { try await gate.wait(for: 1) }
            return .respond(200, Self.fresh.merging(["Vary": "Accept-Language"]), body: "v\(number)")
        }
        let bench = CacheBench(transport, clock: clock)
        var options = CallOptions()
        options.prepare = [
            { request, _ in
                if request.value(forHTTPHeaderField: "Accept-Language") == nil {
                    request.setValue("de", forHTTPHeaderField: "Accept-Language")
                }
            }
        ]
        let german = URLRequest.get("http://origin.example/a", ["Accept-Language": "de"])
        let first = Task { [options] in try await bench.load(.get(), options) }
        for _ in 0..<10_000 where bench.sends < 1 { await Task.yield() }
        #expect(try await bench.load(german) == .network("v2"))
        gate.increment()
        _ = try await first.value
        #expect(try await bench.load(german) == .fresh("v2"))
    }

    @Test("No call joins an exchange of its own partition that is older than its borrowed response")
    func lent() async throws {
        let bench = OrderBench([
            Self.answer("v1"), Self.answer("v2", ["Cache-Control": "max-age=2"]), Self.answer("v3"),
        ])
        let alice = URLRequest.get("http://origin.example/a", ["Cookie": "sid=alice"])
        let first = try await bench.begin(alice, number: 1)
        _ = try await bench.end(2, try await bench.begin(.get(), number: 2))
        #expect(try await bench.hit(alice) == "v2")
        bench.clock.advance(by: .seconds(10))
        let third = Task { [pipeline = bench.pipeline] in
            String(decoding: try await pipeline.send(alice).body.collect(), as: UTF8.self)
        }
        for _ in 0..<10_000 where bench.asked.count < 3 { await Task.yield() }
        #expect(bench.asked.count == 3)
        bench.gates[2].increment()
        _ = try await bench.end(1, first)
        #expect(try await third.value == "v3")
    }

    @Test(
        "A reload's response is newer than the stored one, even if another process with a fast clock wrote that"
    )
    func reloadAfterClockAhead() async throws {
        let fields: HeaderFields = Self.fresh.merging(Self.variance)
        let bench = CacheBench([.respond(200, fields, body: "one"), .respond(200, fields, body: "two")])
        try await bench.load(Self.one)
        let now = StoreInstant(bench.clock.timestamp)
        for listed in try await bench.cache.store.list(after: nil, limit: 10, now: now).listed {
            guard var stored = StoredResponse(decoding: listed.entry.description.metadata) else { continue }
            stored.requestOrder = RequestOrder.latest.next(
                at: bench.clock.timestamp.advanced(by: .seconds(864_000_000))
            )
            var description = listed.entry.description
            description.metadata = stored.encoded
            _ = try await bench.cache.store.replaceDescription(of: listed.entry, with: description, now: now)
        }
        try await bench.load(Self.three, Self.options(.reload))
        #expect(try await bench.load(Self.three) == .fresh("two"))
        #expect(try await bench.load(Self.one) == .fresh("two"))
    }
}
