// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTestKit
import HoldfastTesting
import Testing

@Suite("Plain requests: one decision for all that follow")
struct ResponseFactsTests {
    private struct Case {
        let stored: StoredResponse
        let options: CacheOptions

        init(using random: inout SeededGenerator) throws {
            func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
            func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }
            var options = CacheOptions(mode: pick([.private, .shared]))
            options.heuristicFreshness = !chance(4)
            options.staleWhileRevalidate = pick([.zero, .seconds(50)])
            if chance(3) {
                options.fixedLifetime = pick([.zero, .milliseconds(1_500), .seconds(30), .seconds(Int64.max)])
            }
            if chance(3) { options.maximumLifetime = pick([.zero, .milliseconds(900), .seconds(20)]) }
            if chance(3) { options.negativeLifetime = .seconds(15) }
            if chance(3) { options.targetedFields = ["X-Control"] }
            self.options = options

            var fields: HeaderFields = [:]
            fields["Cache-Control"] = pick([
                nil, "max-age=60", "max-age=60, no-cache", "no-cache=\"set-cookie\", max-age=60", "no-store", "public",
                "max-age=60, must-revalidate", "s-maxage=9, max-age=60", "max-age=60, immutable", "max-age=0",
                "max-age=99999999999999999999", "max-age=60, proxy-revalidate, stale-while-revalidate=100",
                "max-age=-1",
            ])
            if chance(4) { fields["X-Control"] = pick(["max-age=7", "no-cache", "not, a; dictionary=="]) }
            if chance(3) { fields["Age"] = pick(["0", "1", "59", "2147483648", "99999999999999999999", "x"]) }
            if chance(2) { fields["Date"] = pick([date(0), date(-1), date(-59), date(100), "yesterday"]) }
            if chance(4) { fields["Expires"] = pick([date(0), date(33), date(-33), "0"]) }
            if chance(3) { fields["Last-Modified"] = pick([date(-1_000), date(-9_000_000), date(50)]) }
            if chance(3) { fields["ETag"] = pick(["\"e\"", "W/\"e\""]) }
            let delay = pick([0, 0, 250, 1_499, -800, 60_000] as [Int64])
            var stored = StoredResponse(
                target: try target(),
                method: chance(12) ? .head : .get,
                head: ResponseHead(status: pick([200, 203, 204, 301, 404, 500, 503]), fields: fields),
                requestTime: .noon,
                responseTime: .noon.advanced(by: .milliseconds(delay)),
                contentDecoded: chance(4),
                givenLifetime: chance(4) ? 12 : nil,
                needsConfirmation: chance(8),
                targetedFields: options.targets
            )
            if chance(8) { stored.ranges = StoredRanges(intervals: [0..<5], completeLength: pick([5, 10, nil])) }
            self.stored = stored
        }

        func reasoned(_ fields: HeaderFields = [:], now: Timestamp) throws -> ReasonedReuseDecision {
            ReasonedReuseDecision(
                request: RequestHead(method: .get, target: try target(), fields: fields),
                candidates: [stored],
                directive: .default,
                now: now,
                options: options,
                secret: []
            )
        }
    }

    /// Milliseconds around noon, where lifetimes begin and end; far away; and before the response came, as after a clock was set
    /// back.
    private static let offsets: [Int64] = [
        0, 1, 249, 250, 999, 1_000, 1_499, 1_500, 1_501, 1_749, 1_750, 1_751, 6_999, 7_000, 8_999, 9_000, 14_999,
        15_000, 19_999, 20_000, 29_999, 30_000, 30_001, 32_999, 33_000, 58_999, 59_000, 59_999, 60_000, 60_001, 99_000,
        100_000, -1, -1_000, -3_600_000, 86_400_000, 9_000_000_000,
    ]
    private static let instants =
        offsets.map { Timestamp.noon.advanced(by: .milliseconds($0)) } + [Timestamp.distantFuture]

    private static let asked: [String?] = [
        nil, nil, nil, "max-age=0", "max-age=30", "max-age=60, min-fresh=3", "min-fresh=7", "max-stale=5",
        "max-age=5, max-stale", "no-cache", "no-store", "only-if-cached", "no-transform", "max-age=x, min-fresh=-1", "",
    ]

    @Test("It says fresh exactly if the full decision does, with the same age and lifetime", arguments: propertySeeds)
    func likeTheFullDecision(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed ^ (History.seed - 1))
        var (fresh, other, excluded) = (0, 0, 0)
        for round in 0..<max(4_000, History.steps(percent: 1, among: propertySeeds.count)) {
            let tried = try Case(using: &random)
            let now = Self.instants[Int.random(in: 0..<Self.instants.count, using: &random)]
            let asked = Self.asked[Int.random(in: 0..<Self.asked.count, using: &random)]
            var fields = HeaderFields()
            fields[.cacheControl] = asked
            let reasoned = try tried.reasoned(fields, now: now)
            let note: Comment = "seed \(seed), round \(round), now \(now), \(asked ?? "-"): \(tried)"
            let stored = tried.stored
            guard stored.confirmationReason == nil, stored.ranges == nil, stored.method == .get else {
                excluded += 1
                continue
            }
            // As they are stored, too.
            let facts = try #require(stored.facts.encoded.withUnsafeBytes { ResponseFacts(encoded: $0) }, note)
            #expect(facts == stored.facts, note)
            let ruled = tried.options.ruled(for: stored.target, fields: stored.head.fields) ?? tried.options
            guard let standing = facts.standing(now: now, for: asked, options: ruled) else {
                other += 1
                if case .reuse(_, _, isStale: false) = reasoned.decision { Issue.record(note) }
                continue
            }
            fresh += 1
            #expect(standing == stored.standing(now: now, options: tried.options), note)
            #expect(reasoned.decision == .reuse(candidate: 0, age: standing.age, isStale: false), note)
            #expect(reasoned.reason == .fresh, note)
        }
        #expect(min(fresh, other, excluded) > 300, "\(fresh) fresh, \(other) not, \(excluded) excluded")
    }

    @Test("A field that is not in the list does not change the decision", arguments: propertySeeds)
    func otherFields(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let names: [FieldName] = [
            "Accept", "Accept-Encoding", "Accept-Language", "Age", "Allow", "CDN-Cache-Control", "Cache-Status",
            "Connection", "Content-Length", "Content-Range", "Content-Type", "DPR", "Date", "ETag", "Expect", "Expires",
            "Forwarded", "Last-Modified", "Max-Forwards", "No-Vary-Search", "Origin", "Prefer", "Proxy-Authorization",
            "Referer", "Sec-Fetch-Mode", "Surrogate-Control", "TE", "Trailer", "Upgrade", "User-Agent", "Vary", "Via",
            "Warning", "X-Control", "X-Forwarded-For",
        ]
        #expect(names.allSatisfy { !ReuseFields.names.contains($0.canonicalName) })
        let values = ["", "no-cache", "no-store", "max-age=0", "bytes=0-0", "\"e\"", "*", date(0), "gzip", "0"]
        for round in 0..<2_000 {
            let tried = try Case(using: &random)
            var fields: HeaderFields = [:]
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let name = names[Int.random(in: 0..<names.count, using: &random)]
                fields.append(name, values[Int.random(in: 0..<values.count, using: &random)])
            }
            let now = Self.instants[Int.random(in: 0..<Self.instants.count, using: &random)]
            let (with, without) = (try tried.reasoned(fields, now: now), try tried.reasoned(now: now))
            #expect(with == without, "seed \(seed), round \(round), now \(now), \(fields): \(tried)")
        }
    }

    @Test("Each field in the list can change the decision about a fresh response")
    func namedFields() throws {
        let fresh = try stored(["Cache-Control": "max-age=60", "ETag": "\"e\"", "Last-Modified": date(-60)])
        func decision(_ fields: HeaderFields) throws -> ReuseDecision {
            ReuseDecision.decide(
                request: RequestHead(method: .get, target: try target(), fields: fields),
                candidates: [fresh],
                directive: .default,
                now: .noon.plus(5),
                options: CacheOptions(),
                secret: []
            )
        }
        let plain = try decision([:])
        for (name, value) in [
            ("Host", "other.example"), ("Pragma", "no-cache"), ("If-Match", "\"e\""), ("Cache-Control", "no-cache"),
            ("If-Unmodified-Since", date(0)),
        ] {
            #expect(ReuseFields.names.contains(name.lowercased()))
            #expect(try decision(HeaderFields([.init(name: try #require(FieldName(name)), value: value)])) != plain)
        }
        // The others change whose entry is looked for, or what of it answers.
        let others: Set = ["range", "cookie", "if-range", "authorization", "if-none-match", "if-modified-since"]
        #expect(others.isSubset(of: ReuseFields.names))
        #expect(ReuseFields.names.count == others.count + 5)
    }
}
