// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What is stored is the newest response, however the exchanges end.
@Suite("An older response never replaces a newer one", .timeLimit(.minutes(20)))
struct WritingOrderTests {
    private typealias Bench = OrderBench

    private static let fresh: HeaderFields = ["Cache-Control": "max-age=60"]

    private static func answer(_ text: String, _ more: HeaderFields = [:])
        -> @Sendable (URLRequest) -> ScriptedTransport.Step
    {
        { _ in .respond(200, fresh.merging(more), body: text) }
    }

    private static func post(_ url: String = "http://origin.example/a") -> URLRequest {
        var request = URLRequest.get(url)
        request.httpMethod = "POST"
        return request
    }

    @Test("RFC 9111 §4: the response to the request that was sent last stays", arguments: [false, true])
    func reload(streams: Bool) async throws {
        let bench = Bench([
            { _ in streams ? .stream(200, Self.fresh, chunks: ["v", "1"]) : .respond(200, Self.fresh, body: "v1") },
            Self.answer("v2"),
        ])
        let first = try await bench.begin(number: 1)
        let second = try await bench.begin(.get(), .reload, number: 2)
        #expect(try await bench.end(2, second) == "v2")
        #expect(try await bench.end(1, first) == "v1")
        #expect(try await bench.hit() == "v2")
    }

    @Test("Variants are kept apart, and one without Vary does not replace a newer one")
    func variants() async throws {
        let vary: HeaderFields = ["Vary": "X-A"]
        let bench = Bench([Self.answer("1", vary), Self.answer("2", vary), Self.answer("old"), Self.answer("3", vary)])
        let one = URLRequest.get("http://origin.example/a", ["X-A": "1"])
        let two = URLRequest.get("http://origin.example/a", ["X-A": "2"])
        let first = try await bench.begin(one, number: 1)
        let second = try await bench.begin(two, .reload, number: 2)
        _ = try await bench.end(2, second)
        _ = try await bench.end(1, first)
        #expect(try await bench.hit(one) == "1")
        #expect(try await bench.hit(two) == "2")
        let third = try await bench.begin(one, .reload, number: 3)
        let fourth = try await bench.begin(one, .reload, number: 4)
        _ = try await bench.end(4, fourth)
        _ = try await bench.end(3, third)
        #expect(try await bench.hit(one) == "3")
    }

    @Test("RFC 9111 §4.4: a HEAD that ends after a POST and a new GET changes nothing")
    func headAfterPost() async throws {
        let bench = Bench([
            Self.answer("old", ["ETag": "\"v\""]),
            { _ in .respond(200, ["Cache-Control": "max-age=600", "ETag": "\"v\"", "X-From": "head"]) },
            { _ in .respond(204) }, Self.answer("new", ["ETag": "\"v\""]),
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        var request = URLRequest.get()
        request.httpMethod = "HEAD"
        let head = try await bench.begin(request, .reload, number: 2)
        _ = try await bench.end(3, try await bench.begin(Self.post(), number: 3))
        _ = try await bench.end(4, try await bench.begin(number: 4))
        _ = try await bench.end(2, head)
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh && !response.fields.contains("X-From"))
        _ = try await response.body.collect()
    }

    @Test("A HEAD that was sent before a reload changes nothing in the reload's response")
    func headBeforeReload() async throws {
        let bench = Bench([
            Self.answer("old", ["ETag": "\"v\""]),
            { _ in .respond(200, ["Cache-Control": "max-age=600", "ETag": "\"v\"", "X-From": "head"]) },
            Self.answer("new", ["ETag": "\"v\""]),
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        var request = URLRequest.get()
        request.httpMethod = "HEAD"
        let head = try await bench.begin(request, .reload, number: 2)
        _ = try await bench.end(3, try await bench.begin(.get(), .reload, number: 3))
        _ = try await bench.end(2, head)
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh && !response.fields.contains("X-From"))
        _ = try await response.body.collect()
    }

    @Test(
        "RFC 9111 §4.3.4: a 304 that forbids storing removes what the 304 to an earlier request has updated meanwhile",
        arguments: [["Cache-Control": "no-store"], ["Vary": "*"], ["Cache-Control": "private"]] as [HeaderFields],
        [false, true]
    )
    func forbiddenMeanwhile(_ fields: HeaderFields, addsVary: Bool) async throws {
        let tag: HeaderFields = ["ETag": "\"v\""]
        let isShared = fields[.cacheControl] == "private"
        let bench = Bench(
            [
                { _ in .respond(200, tag.merging(["Cache-Control": "max-age=0"]), body: "old") },
                { _ in
                    .respond(304, tag.merging(Self.fresh).merging(addsVary ? ["Vary": "Accept"] : [:]))
                },
                { _ in .respond(304, tag.merging(fields)) },
            ],
            mode: isShared ? .shared : .private
        )
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let earlier = try await bench.begin(number: 2)
        let later = try await bench.begin(.get(), .revalidate, number: 3)
        #expect(try await bench.end(2, earlier) == "old")
        #expect(try await bench.end(3, later) == "old")
        #expect(try await bench.hit() == nil)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("No-Vary-Search: a response in transfer that a POST to an equivalent query invalidates is not stored")
    func searchVariance() async throws {
        let bench = Bench([
            Self.answer("old", ["No-Vary-Search": "params=(\"s\")"]), { _ in .respond(204) },
        ])
        let get = try await bench.begin(.get("http://origin.example/?q=a&s=1"), number: 1)
        _ = try await bench.end(2, try await bench.begin(Self.post("http://origin.example/?q=a&s=9"), number: 2))
        _ = try await bench.end(1, get)
        #expect(try await bench.hit(.get("http://origin.example/?q=a&s=1")) == nil)
        #expect(try await bench.hit(.get("http://origin.example/?q=a&s=9")) == nil)
    }

    @Test("RFC 9111 §4.4: after a cancelled POST no earlier response is used")
    func cancelledPost() async throws {
        let executor = GatedExecutor()
        let transport = ScriptedTransport { request in
            if request.httpMethod == "POST" { return .silence }
            return .respond(200, Self.fresh, body: "x")
        }
        let bench = CacheBench(transport) { $0.executor = executor }
        executor.letGo()
        try await bench.load()
        #expect(try await bench.load() == .fresh("x"))
        let post = Task { try await bench.load(Self.post()) }
        while bench.sends < 2 { await Task.yield() }
        // From here on work that outlives its call stands still, the invalidation too.
        executor.hold()
        post.cancel()
        _ = await post.result
        let get = Task { try await bench.load() }
        for _ in 0..<1_000 { await Task.yield() }
        executor.letGo()
        #expect(try await get.value == .network("x"))
    }

    @Test("RFC 9111 §5.2.1.4: a call that demands the origin does not join a request sent before it")
    func revalidating() async throws {
        let bench = Bench([Self.answer("before"), Self.answer("after")])
        let first = try await bench.begin(number: 1)
        var options = CallOptions()
        options.cache = .revalidate
        let second = Task { [bench, options] in
            String(
                decoding: try await bench.pipeline.send(.get(), options: options).body.collect(),
                as: UTF8.self
            )
        }
        for _ in 0..<10_000 where bench.asked.count < 2 { await Task.yield() }
        #expect(bench.asked.count == 2)
        // Were it to wait for the first, both would have that one's answer.
        bench.gates[1].increment()
        _ = try await bench.end(1, first)
        #expect(try await second.value == "after")
        #expect(try await bench.hit() == "after")
    }

    @Test("RFC 5861 §3: a caller's newer tag does not keep a stale response in use")
    func newerTag() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport { request in
            let tags = request.value(forHTTPHeaderField: "If-None-Match") ?? ""
            if tags.contains("\"2\"") { return .respond(304, ["ETag": "\"2\""]) }
            let isFirst = clock.now.sinceOrigin < .seconds(1)
            let fields: HeaderFields = [
                "Cache-Control": "max-age=1, stale-while-revalidate=600", "ETag": isFirst ? "\"1\"" : "\"2\"",
            ]
            return .respond(200, fields, body: isFirst ? "one" : "two")
        }
        let bench = CacheBench(transport, clock: clock)
        try await bench.load()
        clock.advance(by: .seconds(5))
        try await bench.load(.get("http://origin.example/a", ["If-None-Match": "\"2\""]))
        await bench.pipeline.drain()
        #expect(try await bench.load() == .fresh("two"))
    }

    @Test("A newer response that cannot be kept also removes the older one", arguments: ["post", "tag"])
    func overtakenReload(_ way: String) async throws {
        let bench = Bench([Self.answer("v1"), Self.answer("v2"), { _ in .respond(204) }])
        let own = URLRequest.get("http://origin.example/a", ["Authorization": "A"])
        _ = try await bench.end(1, try await bench.begin(own, number: 1))
        let reload = try await bench.begin(own, .reload, number: 2)
        if way == "post" {
            _ = try await bench.end(3, try await bench.begin(Self.post(), number: 3))
        } else {
            try await bench.cache.remove(.tag("other"))
        }
        #expect(try await bench.end(2, reload) == "v2")
        #expect(try await bench.hit(own) == nil)
    }

    @Test(
        "A refused response, or one replaced by a part, does not bring an older variant back",
        arguments: ["refused", "broken"]
    )
    func uncovered(_ way: String) async throws {
        let clock = ManualClock()
        let numbers = AnswerNumbers()
        let transport = ScriptedTransport { _ in
            let number = numbers.next()
            var fields = Self.fresh.merging(["Date": HTTPDate(clock.timestamp).description, "ETag": "\"\(number)\""])
            if number == 1 { fields[.vary] = "Accept" }
            if number == 3, way == "broken" {
                let failure = ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
                return .stream(200, fields, chunks: ["v"], length: 2, failure: failure)
            }
            return .respond(200, fields, body: "v\(number)")
        }
        let bench = CacheBench(transport, clock: clock)
        try await bench.load()
        clock.advance(by: .seconds(10))
        try await bench.load(.get("http://origin.example/a", ["Accept": "text/x"]))
        #expect(try await bench.load() == .fresh("v2"))
        var options = CallOptions()
        if way == "refused" {
            options.acceptance = Acceptance { _ in throw Refused() }
        } else {
            options.cache = .revalidate
        }
        _ = try? await bench.load(.get(), options)
        #expect(try await bench.load().body != "v1")
    }

    @Test(
        "RFC 9111 §4.3.4: of two updates at once, the later one is applied to what the other left, and the response stays",
        arguments: ["GET", "HEAD"],
        [[2, 3], [3, 2]]
    )
    func twoUpdates(_ method: String, order: [Int]) async throws {
        let tagged: HeaderFields = ["Cache-Control": "no-cache", "ETag": "\"v\""]
        let bench = Bench([
            { _ in .respond(200, tagged, body: "v") }, { _ in .respond(304, tagged.merging(["X-First": "1"])) },
            { _ in .respond(method == "HEAD" ? 200 : 304, tagged.merging(["X-Second": "1"])) },
            { _ in .respond(304, tagged) },
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        var later = URLRequest.get()
        later.httpMethod = method
        // Pins stay with the response.
        #expect(try await bench.cache.pin(.all).pinned == 1)
        let calls = [2: try await bench.begin(number: 2), 3: try await bench.begin(later, .revalidate, number: 3)]
        for number in order {
            let text = try await bench.end(number, try #require(calls[number]))
            #expect(text == (number == 3 && method == "HEAD" ? "" : "v"))
        }
        let call = Task { [pipeline = bench.pipeline] in try await pipeline.send(.get()) }
        bench.gates[3].increment()
        let response = try await call.value
        #expect(response.source == .revalidated)
        #expect(response.fields["X-Second"] == "1")
        #expect(response.fields["X-First"] == (order == [2, 3] ? "1" : nil))
        #expect(try await response.body.collect().array == Array("v".utf8))
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test("A response that a newer one has overtaken also removes the older one, even if the newer one breaks off")
    func overtakenByBroken() async throws {
        let broken = ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
        let bench = Bench([
            Self.answer("v1"), Self.answer("v2"),
            { _ in .stream(200, Self.fresh, chunks: ["v"], length: 2, failure: broken) },
        ])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        let second = try await bench.begin(.get(), .reload, number: 2)
        let third = try await bench.begin(.get(), .reload, number: 3)
        await #expect(throws: ServiceError.self) { try await bench.end(3, third) }
        #expect(try await bench.hit() == "v1")
        #expect(try await bench.end(2, second) == "v2")
        #expect(try await bench.hit() == nil)
    }

    @Test("Nothing is remembered of a finished exchange")
    func rows() async throws {
        let bench = Bench([Self.answer("1"), Self.answer("2"), { _ in .respond(204) }])
        _ = try await bench.end(1, try await bench.begin(number: 1))
        _ = try await bench.end(2, try await bench.begin(.get(), .reload, number: 2))
        _ = try await bench.end(3, try await bench.begin(Self.post(), number: 3))
        await bench.pipeline.drain()
        for _ in 0..<100 where bench.cache.writer.order.count > 0 { await Task.yield() }
        #expect(bench.cache.writer.order.count == 0)
    }

    @Test(
        "Another principal's response in between supersedes nobody else's",
        arguments: ["private, max-age=60", "max-age=60"]
    )
    func ofAnother(_ guest: String) async throws {
        let bench = Bench([
            Self.answer("old"), Self.answer("new"),
            { _ in .respond(200, ["Cache-Control": guest], body: "guest") },
        ])
        let bob = URLRequest.get("http://origin.example/a", ["Cookie": "sid=bob"])
        _ = try await bench.end(1, try await bench.begin(bob, number: 1))
        bench.clock.advance(by: .seconds(1))
        let second = try await bench.begin(bob, .revalidate, number: 2)
        bench.clock.advance(by: .seconds(1))
        _ = try await bench.end(3, try await bench.begin(.get(), .reload, number: 3))
        #expect(try await bench.end(2, second) == "new")
        // A guest's newer response may answer who shows no more than a cookie.
        #expect(try await bench.hit(bob) == (guest.contains("private") ? "new" : "guest"))
    }

    @Test("A newer response for all also removes the caller's own older one")
    func ownBesideShared() async throws {
        let transport = ScriptedTransport([
            .respond(200, Self.fresh, body: "old"), .respond(200, ["Cache-Control": "public, max-age=60"], body: "new"),
            .respond(200, body: "gone"), .respond(200, Self.fresh, body: "newest"),
        ])
        let bench = CacheBench(transport, mode: .shared)
        let bob = URLRequest.get("http://origin.example/a", ["Cookie": "sid=bob"])
        try await bench.load(bob)
        var reload = CallOptions()
        reload.cache = .reload
        bench.clock.advance(by: .seconds(1))
        try await bench.load(bob, reload)
        #expect(try await bench.load(bob) == .fresh("new"))
        try await bench.load(.request("DELETE", "http://origin.example/a"))
        #expect(try await bench.load(bob) == .network("newest"))
    }

    @Test("A part that a reload brings with another Vary also removes the older whole")
    func reloadedPart() async throws {
        let part: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"2\"", "Vary": "X-A", "Content-Range": "bytes 0-2/6",
        ]
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"1\""], body: "abcdef"),
            .respond(206, part, body: "ABC"),
            .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"2\""], body: "ABCDEF"),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(1))
        var reload = CallOptions()
        reload.cache = .reload
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=0-2"]), reload)
        #expect(try await bench.load().body == "ABCDEF")
    }

    @Test("RFC 9111 §4.4: a response for a query is not stored if an equivalent URI was changed while it arrived")
    func changedWhileStored() async throws {
        let bench = Bench([
            { _ in
                .stream(200, ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"s\")"], chunks: ["o", "ld"])
            },
            { _ in .respond(200) },
        ])
        var options = CallOptions()
        options.cache = .default
        bench.gates[0].increment()
        let response = try await bench.pipeline.send(.get("http://origin.example/a?s=1"), options: options)
        // Its head has come, and nothing of its body has been read.
        _ = try await bench.end(2, try await bench.begin(Self.post("http://origin.example/a?s=2"), number: 2))
        _ = try await response.body.collect()
        await bench.pipeline.drain()
        for query in ["s=1", "s=2"] {
            #expect(try await bench.hit(.get("http://origin.example/a?\(query)")) == nil, "\(query)")
        }
    }
}

/// Runs tasks, or holds them until it is told to go on.
private final class GatedExecutor: TaskExecutor {
    private let state = Mutex<(isHeld: Bool, jobs: [UnownedJob])>((false, []))

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isHeld = state.withLock { state in
            if state.isHeld { state.jobs.append(job) }
            return state.isHeld
        }
        if !isHeld { run(job) }
    }

    func hold() {
        state.withLock { $0.isHeld = true }
    }

    func letGo() {
        let jobs = state.withLock { state in
            defer { state = (false, []) }
            return state.jobs
        }
        for job in jobs { run(job) }
    }

    private func run(_ job: UnownedJob) {
        let executor = asUnownedTaskExecutor()
        DispatchQueue.global().async { job.runSynchronously(on: executor) }
    }
}
