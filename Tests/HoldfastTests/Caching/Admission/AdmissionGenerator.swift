// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

/// Makes a sequence from a seed.
///
/// Each sequence has a resource of its own nature, from which single answers depart: with all fields drawn anew each time hardly
/// any validator would ever be met again.
struct AdmissionGenerator {
    /// The paths, and what each is by RFC 3986 §6.2.2.
    ///
    /// Of `/q` the origin says that its query tells nothing apart (No-Vary-Search).
    static let paths = ["/a": "/a", "/b": "/b", "/x/%2e%2e/a": "/a", "/q?s=1": "/q", "/q?s=2": "/q"]

    /// What a sequence has more of than others, and how it may begin: each is rare where everything is drawn alike.
    private enum Theme: CaseIterable {
        case none, heads, dates, weakParts, conditions, releasedCookies, ownCookies, queries, cancelled, posts, reloads
    }

    private var random: SeededGenerator
    private let setting: AdmissionSetting
    private var theme = Theme.none
    private var nature = PlannedAnswer()
    private var paths: [String] = ["/a"]
    private var nextCall = 1
    private var held: [Int] = []
    private var calls: [PlannedCall] = []

    static func sequence(seed: UInt64, setting: AdmissionSetting) -> AdmissionSequence {
        var generator = AdmissionGenerator(seed: seed, setting: setting)
        return AdmissionSequence(seed: seed, setting: setting, steps: generator.steps())
    }

    private init(seed: UInt64, setting: AdmissionSetting) {
        random = SeededGenerator(seed: seed)
        self.setting = setting
    }

    private mutating func steps() -> [AdmissionStep] {
        nature.tag = pick([.strong, .strong, .strong, .weak, .none])
        nature.modified = pick([.none, .old, .old, .recent])
        nature.coding = pick([.identity, .identity, .negotiated, .gzip])
        nature.cacheControl = cacheControl()
        nature.vary = chance(30) ? vary() : nil
        nature.setsCookie = chance(40)
        nature.digests = digests()
        // To a private cache each principal is a cache of its own, and a guest's response may answer who shows no more than a cookie.
        nature.isPersonal = setting.mode == .private && chance(30)
        if chance(30) { paths.append("/b") }
        if chance(20) { paths.append("/x/%2e%2e/a") }
        if chance(50) { theme = pick(Theme.allCases) }
        // Dates are lent to nobody but those who show no more than a cookie.
        if setting.mode == .private, setting.identity == .cookie, chance(30) { theme = .dates }
        switch theme {
        case .dates:
            (nature.tag, nature.modified) = (.none, .old)
            nature.isPersonal = setting.mode == .private
        case .weakParts: (nature.tag, nature.modified) = (.weak, pick([.none, .recent]))
        case .releasedCookies: (nature.setsCookie, nature.tag) = (true, .strong)
        case .conditions: nature.tag = .strong
        case .queries: paths = ["/q?s=1", "/q?s=2"]
        case .none, .heads, .ownCookies, .cancelled, .posts, .reloads: break
        }
        let holds = chance(theme == .heads || theme == .ownCookies || theme == .queries ? 90 : 50)

        var steps = chance(50) ? opening() : []
        for _ in 0..<Int.random(in: 10...30, using: &random) {
            if chance(45) {
                steps.append(.advance(milliseconds: pick([100, 1_000, 2_000, 5_000, 11_000, 61_000, 700_000])))
            }
            if chance(theme == .conditions ? 30 : 11) { steps.append(.change(path: pick(paths))) }
            if !held.isEmpty, chance(40) {
                let call = held.remove(at: Int.random(in: 0..<held.count, using: &random))
                steps.append(chance(18) ? .cancel(call: call, isNoticed: chance(50)) : .release(call: call))
            }
            // Calls that ask for the same while one is held: such ones may share its exchange.
            if let last = calls.last, chance(held.isEmpty ? 5 : 35) {
                var call = last
                call.number = takeNumber()
                if chance(40) { call.directive = .reload }
                steps.append(.call(call, answer(to: call), isHeld: false))
                continue
            }
            let call = call()
            calls.append(call)
            let isHeld = holds && chance(25)
            if isHeld { held.append(call.number) }
            steps.append(.call(call, answer(to: call), isHeld: isHeld))
        }
        while !held.isEmpty {
            steps.append(.release(call: held.remove(at: Int.random(in: 0..<held.count, using: &random))))
        }
        // What is stored at the end must be seen by somebody, or what went wrong last would never show.
        for user in AdmissionUser.allCases {
            for path in paths {
                var probe = PlannedCall(number: takeNumber(), user: user, path: path)
                probe.directive = .onlyIfCached
                probe.selecting = selecting(for: user)
                steps.append(.call(probe, PlannedAnswer(), isHeld: false))
            }
        }
        return steps
    }

    /// The beginning of a theme in its shortest form; what is drawn at random goes on from there.
    private mutating func opening() -> [AdmissionStep] {
        let user = pick([AdmissionUser.guest, .alice])
        func call(_ method: String = "GET", _ path: String? = nil, by caller: AdmissionUser? = nil) -> PlannedCall {
            var call = PlannedCall(number: takeNumber(), user: caller ?? user, path: path ?? paths[0])
            call.method = method
            return call
        }
        func step(_ call: PlannedCall, _ directives: [String] = [], isHeld: Bool = false) -> AdmissionStep {
            var answer = nature
            answer.vary = nil
            if !directives.isEmpty { answer.cacheControl = directives }
            return .call(call, answer, isHeld: isHeld)
        }
        switch theme {
        case .none, .weakParts: return []
        case .heads:
            let head = call("HEAD")
            return [
                step(call(), ["max-age=60"]), step(head, ["max-age=60"], isHeld: true), step(call("POST")),
                step(call(), ["max-age=60"]), .release(call: head.number), step(call()),
            ]
        case .dates:
            var asking = call(by: .alice)
            asking.cacheControl = "no-cache"
            return [step(call(by: .guest), ["max-age=60"]), step(asking, ["max-age=60"]), step(call(by: .alice))]
        case .conditions:
            var knowing = call()
            knowing.condition = .ifNoneMatch
            return [
                step(call(), ["max-age=1", "stale-while-revalidate=100"]), .advance(milliseconds: 5_000),
                .change(path: paths[0]), step(knowing, ["max-age=60"]), step(call(), ["max-age=60"]),
            ]
        case .releasedCookies:
            var news = nature
            (news.notModifiedHasCacheControl, news.vary) = (false, nil)
            return [
                step(call(by: .guest), ["max-age=1", "public"]), .advance(milliseconds: 5_000),
                .call(call(by: .alice), news, isHeld: false), step(call(by: .guest)),
            ]
        case .ownCookies:
            let first = call()
            return [
                step(first, ["max-age=60", "private=\"set-cookie\""], isHeld: true), step(call()), step(call()),
                .release(call: first.number),
            ]
        case .queries:
            let first = call("GET", paths[0])
            return [
                step(first, ["max-age=60"], isHeld: true), step(call("PUT", paths[1])), .release(call: first.number),
                step(call("GET", pick(paths))),
            ]
        case .cancelled:
            let change = call("POST")
            return [
                step(call(), ["max-age=60"]), step(change, isHeld: true),
                .cancel(call: change.number, isNoticed: false), step(call(), ["max-age=60"]),
            ]
        case .reloads:
            let first = call()
            var reload = call()
            reload.directive = .reload
            return [
                step(first, ["max-age=60"], isHeld: true), step(reload, ["max-age=1"]), .advance(milliseconds: 5_000),
                step(call(), ["max-age=60"], isHeld: true), .release(call: first.number),
            ]
        case .posts:
            var query = call("POST")
            (query.content, query.isQuery) = ("q=1", true)
            var conditional = query
            (conditional.number, conditional.condition) = (takeNumber(), .ifNoneMatchAny)
            return [step(query, ["max-age=60"]), step(conditional, ["max-age=60"])]
        }
    }

    private mutating func call() -> PlannedCall {
        var call = PlannedCall(
            number: takeNumber(),
            user: pick([.guest, .guest, .alice, .alice, .bob]),
            path: pick(paths)
        )
        call.method = pick(["GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "GET"])
        if theme == .heads, chance(40) { call.method = pick(["HEAD", "POST"]) }
        if call.method == "POST" { call.method = pick(["POST", "POST", "PUT", "DELETE"]) }
        if call.method == "GET", chance(4) {
            (call.method, call.content, call.isQuery) = ("POST", pick(["q=1", "q=2"]), true)
        }
        call.selecting = selecting(for: call.user)
        if call.isUnsafe { return call }
        if call.method == "GET", chance(7) { call.content = pick(["q=1", "q=2"]) }
        if chance(25) {
            call.cacheControl = pick([
                "no-cache", "max-age=0", "no-store", "only-if-cached", "max-stale", "max-stale=20", "max-age=5",
            ])
        } else if chance(theme == .heads ? 60 : 30) {
            call.directive = pick([.reload, .reload, .revalidate, .onlyIfCached, .noStore, .maxStale])
        }
        if chance(14) { call.condition = pick(PlannedCall.Condition.allCases) }
        if theme == .conditions, chance(40) { call.condition = .ifNoneMatch }
        if theme == .dates, chance(30) { call.cacheControl = "no-cache" }
        if call.method == "GET", call.content == nil, chance(theme == .weakParts ? 60 : 18) {
            call.range = pick(["0-1", "1-2", "2-", "-2", "0-2", "3-4"])
            call.hasIfRange = chance(20)
        }
        return call
    }

    private mutating func selecting(for user: AdmissionUser) -> [String: String] {
        var fields: [String: String] = [:]
        if chance(60) { fields["X-User"] = user.rawValue }
        if chance(40) { fields["Accept-Language"] = pick(["de", "en"]) }
        if chance(40) { fields["Accept-Encoding"] = "gzip" }
        return fields
    }

    private mutating func answer(to call: PlannedCall) -> PlannedAnswer {
        var answer = nature
        if chance(35) { answer.cacheControl = cacheControl() }
        if chance(25) { answer.vary = chance(50) ? vary() : nil }
        if chance(25) { answer.setsCookie.toggle() }
        if chance(10) { answer.tag = pick(PlannedAnswer.Tag.allCases) }
        if chance(10) { answer.modified = pick(PlannedAnswer.Modified.allCases) }
        if chance(20) { answer.coding = pick(PlannedAnswer.Coding.allCases) }
        if chance(25) { answer.digests = digests() }
        if chance(8) { answer.age = pick([3, 30, 600]) }
        if chance(15) {
            answer.outcome = pick([.failure(status: 404), .failure(status: 500), .failure(status: 503), .lost])
        }
        answer.honorsConditions = chance(85)
        answer.honorsRange = chance(90)
        answer.saysQueryIsNothing = chance(85)
        answer.notModifiedHasCacheControl = chance(theme == .releasedCookies ? 20 : 70)
        answer.notModifiedHasValidators = chance(70)
        if call.method == "GET", chance(5) { answer.breaksAfter = pick([1, 2, 3]) }
        return answer
    }

    private mutating func cacheControl() -> [String] {
        var directives: [String] = []
        if theme == .releasedCookies { return ["max-age=\(pick([1, 10]))", "public"] }
        if theme == .ownCookies { directives.append("private=\"set-cookie\"") }
        if theme == .conditions { directives.append("stale-while-revalidate=100") }
        if chance(80) { directives.append("max-age=\(pick([0, 1, 10, 10, 60, 600]))") }
        if chance(20) { directives.append("s-maxage=\(pick([1, 10, 60]))") }
        if theme != .ownCookies, chance(20) {
            directives.append(pick(["private", "private", "private=\"set-cookie\""]))
        }
        if chance(25) { directives.append("public") }
        if chance(8) { directives.append("no-store") }
        if chance(8) { directives.append(pick(["no-cache", "no-cache", "no-cache=\"set-cookie\""])) }
        if chance(10) { directives.append("must-revalidate") }
        if theme != .conditions, chance(25) { directives.append("stale-while-revalidate=\(pick([5, 100]))") }
        if chance(8) { directives.append("stale-if-error=100") }
        return directives
    }

    private mutating func vary() -> String {
        pick(["X-User", "X-User", "Accept-Language", "X-User, Accept-Language", "Accept-Encoding", "*"])
    }

    private mutating func digests() -> [PlannedAnswer.Digest] {
        chance(60) ? [] : PlannedAnswer.Digest.allCases.filter { _ in chance(50) }
    }

    private mutating func takeNumber() -> Int {
        defer { nextCall += 1 }
        return nextCall
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int.random(in: 0..<values.count, using: &random)]
    }
}
