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

@Suite("The table of ready answers", .timeLimit(.minutes(20)))
struct ReadyAnswersTests {
    private static let now = Timestamp(secondsSinceEpoch: 1_700_000_000)

    /// An answer that shows by its parts which one it is.
    private static func answer(_ url: String, to principal: String = "", version: UInt64 = 1) throws -> ReadyAnswer {
        let target = try TargetURI(url)
        let stored = StoredResponse(
            target: target,
            head: ResponseHead(status: .ok, fields: ["Cache-Control": "max-age=60", "X-URL": url]),
            requestTime: now,
            responseTime: now
        )
        let entry = StoredEntry(
            key: StoreKey(Array(url.utf8)),
            variant: StoreKey([]),
            version: StoredEntry.Version(number: version),
            description: EntryDescription(metadata: ByteChunk()),
            bodyLength: 0,
            storedAt: StoreInstant(now)
        )
        let reuse = try #require(PlainReuse(stored, options: CacheOptions()))
        return try #require(
            ReadyAnswer(
                entry,
                stored: stored,
                reuse: reuse,
                url: url,
                principal: principal,
                fields: [:],
                implicit: [:],
                target: target,
                searchVarianceCount: 0
            )
        )
    }

    @Test("An answer is found by its URL in the stripe that keeps it, and in no other")
    func finds() throws {
        let table = ReadyAnswers(capacity: 1 << 20)
        let kept = try Self.answer("http://origin.example/a")
        table.keep(kept, stripe: 1)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 1) === kept)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 0) == nil)
        #expect(table.answer(for: "http://origin.example/b", to: "", stripe: 1) == nil)
        #expect(table.answer(for: "", to: "", stripe: 1) == nil)
        #expect(table.answer(for: "http://origin.example/a", to: "p", stripe: 1) == nil)
        let personal = try Self.answer("http://origin.example/a", to: "p")
        table.keep(personal, stripe: 1)
        #expect(table.answer(for: "http://origin.example/a", to: "p", stripe: 1) === personal)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 1) === kept)
        let newer = try Self.answer("http://origin.example/a", version: 2)
        table.keep(newer, stripe: 1)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 1) === newer)
    }

    @Test("A removed answer is not found, and its replacement stays")
    func givenUp() throws {
        let table = ReadyAnswers(capacity: 1 << 20)
        let (old, new) = (
            try Self.answer("http://origin.example/a"), try Self.answer("http://origin.example/a", version: 2)
        )
        table.keep(old, stripe: 0)
        table.giveUp(old, stripe: 0)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 0) == nil)
        table.keep(new, stripe: 0)
        table.giveUp(old, stripe: 0)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 0) === new)
    }

    @Test(
        "It has as many places as the store has entries, within bounds, and keeps no more",
        arguments: [(0, 128), (1 << 20, 128), (64 << 20, 4096), (Int.max, 32_768), (-1, 128)]
    )
    func bounded(_ capacity: Int, _ places: Int) throws {
        let table = ReadyAnswers(capacity: capacity)
        let urls = (0..<places * 4).map { "http://origin.example/\($0)" }
        weak var first: ReadyAnswer?
        for url in urls {
            let answer = try Self.answer(url)
            if first == nil { first = answer }
            table.keep(answer, stripe: 3)
        }
        let found = urls.count { table.answer(for: $0, to: "", stripe: 3) != nil }
        #expect(found <= places)
        // Four answers for each place leave few places empty, if the hash is any good.
        #expect(found > places / 2)
        for stripe in [0, 2] { #expect(urls.allSatisfy { table.answer(for: $0, to: "", stripe: stripe) == nil }) }
    }

    @Test("Without stripes nothing is kept")
    func none() throws {
        let table = ReadyAnswers(capacity: 1 << 20, stripes: 0)
        let answer = try Self.answer("http://origin.example/a")
        table.keep(answer, stripe: 0)
        table.giveUp(answer, stripe: 0)
        #expect(table.answer(for: "http://origin.example/a", to: "", stripe: 0) == nil)
        #expect(!table.hasPlace(for: "http://origin.example/a", to: "", stripe: 0))
    }

    @Test("A new answer takes an occupied place one time in sixteen; a free one or its own at once")
    func places() throws {
        let table = ReadyAnswers(capacity: 1 << 20)
        let urls = (0..<2000).map { "http://origin.example/\($0)" }
        for url in urls where table.hasPlace(for: url, to: "", stripe: 0) {
            table.keep(try Self.answer(url), stripe: 0)
        }
        let kept = urls.filter { table.answer(for: $0, to: "", stripe: 0) != nil }
        #expect(kept.allSatisfy { table.hasPlace(for: $0, to: "", stripe: 0) })
        let stranger = "http://origin.example/stranger"
        let given = (0..<160).count { _ in table.hasPlace(for: stranger, to: "", stripe: 0) }
        #expect(given == 10)
        #expect((0..<160).allSatisfy { _ in table.hasPlace(for: stranger, to: "", stripe: 1) })
    }

    @Test("With more URLs than places, the popular ones keep theirs")
    func staysUnderAScan() throws {
        let table = ReadyAnswers(capacity: 1 << 20)
        func ask(_ url: String) throws -> Bool {
            if table.answer(for: url, to: "", stripe: 0) != nil { return true }
            if table.hasPlace(for: url, to: "", stripe: 0) { table.keep(try Self.answer(url), stripe: 0) }
            return false
        }
        // Every place has somebody who is never asked for again.
        for number in 0..<2000 { table.keep(try Self.answer("http://origin.example/once/\(number)"), stripe: 0) }
        let hot = (0..<20).map { "http://origin.example/hot/\($0)" }
        var found = 0
        for round in 0..<200 {
            for url in hot where try ask(url) { found += 1 }
            for number in 0..<100 { _ = try ask("http://origin.example/scan/\(round)/\(number)") }
        }
        // Each round's strangers want a place in most of the 64 sets. A hot one waits some rounds for its own, and keeps it once it is found.
        #expect(found > 200 * 20 * 6 / 10)
    }

    @Test("What it keeps is released with it, and when it is replaced")
    func frees() throws {
        weak var kept: ReadyAnswer?
        weak var replaced: ReadyAnswer?
        do {
            let table = ReadyAnswers(capacity: 1 << 20)
            do {
                let (old, new) = (
                    try Self.answer("http://o.example/a"), try Self.answer("http://o.example/a", version: 2)
                )
                (replaced, kept) = (old, new)
                table.keep(old, stripe: 2)
                table.keep(new, stripe: 2)
            }
            #expect(replaced == nil)
            #expect(kept != nil)
            #expect(table.answer(for: "http://o.example/a", to: "", stripe: 2) != nil)
        }
        #expect(kept == nil)
    }

    @Test("Many tasks keep, find and remove at once: each finds complete answers for its URL")
    func stress() async throws {
        let table = ReadyAnswers(capacity: 1 << 20)
        let urls = (0..<200).map { "http://origin.example/\($0)" }
        let answers = try urls.map { try Self.answer($0) }
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(seed: task)
                    var wrong = 0
                    for _ in 0..<20_000 {
                        let number = Int.random(in: 0..<200, using: &random)
                        let stripe = Int.random(in: 0..<CacheMeter.stripeCount, using: &random)
                        switch Int.random(in: 0..<8, using: &random) {
                        case 0...2: table.keep(answers[number], stripe: stripe)
                        case 3: table.giveUp(answers[number], stripe: stripe)
                        default:
                            guard let found = table.answer(for: urls[number], to: "", stripe: stripe) else { continue }
                            let age = Int64.random(in: 0..<9, using: &random)
                            let fields = found.fields(
                                now: Self.now.advanced(by: .seconds(age)),
                                CacheDecision(.hit, reason: .fresh)
                            )
                            if found !== answers[number] || fields["Age"] != "\(age)" || fields["X-URL"] != urls[number]
                            {
                                wrong += 1
                            }
                        }
                    }
                    return wrong
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }

    @Test("Many tasks read one cache while others purge and replace: nobody gets what was purged before")
    func wholeCache() async throws {
        let numbers = AnswerNumbers()
        // Each answer says how many there were before it.
        let transport = ScriptedTransport { _ in
            .respond(200, ["Cache-Control": "max-age=60"], body: "\(numbers.next())")
        }
        let cache = HTTPCache.inMemory()
        let pipeline = Pipeline(transport: transport, cache: cache)
        let purgedUpTo = SharedValue(0)
        let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    var wrong = 0
                    for _ in 0..<3_000 {
                        let oldest = purgedUpTo.value
                        let (body, _) = try await pipeline.data(for: .get())
                        if Int(String(decoding: body, as: UTF8.self)) ?? 0 <= oldest { wrong += 1 }
                    }
                    return wrong
                }
            }
            group.addTask {
                for _ in 0..<100 {
                    // A number of its own: every answer with a lower one was sent before the purge.
                    let drawn = numbers.next()
                    try await cache.remove(.all)
                    purgedUpTo.set(drawn)
                    for _ in 0..<20 { await Task.yield() }
                }
                return 0
            }
            return try await group.reduce(0, +)
        }
        #expect(wrong == 0)
        let counted = cache.statistics
        #expect(counted.requests == 18_000)
        #expect(counted.allHits + counted.collapsed + counted.misses == counted.requests)
    }
}
