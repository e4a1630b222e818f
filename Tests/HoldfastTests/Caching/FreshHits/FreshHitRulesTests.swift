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

@Suite("Fresh hits: the rules of the cache and of HTTP", .timeLimit(.minutes(20)))
struct FreshHitRulesTests {
    private static func options(_ change: (inout CacheOptions) -> Void) -> CacheOptions {
        var options = CacheOptions()
        change(&options)
        return options
    }

    @Test("A stored redirect is followed hop by hop, also if both hops are ready", arguments: ComparedChain.allCases)
    func redirect(_ chain: ComparedChain) async {
        let twins = ComparedTwins(
            ComparedSetting(chain: chain) { request, number in
                request.url?.path == "/a"
                    ? .respond(301, ["Location": "/b", "Cache-Control": "max-age=60"], body: "moved")
                    : .respond(200, ["Cache-Control": "max-age=60"], body: "there")
            }
        )
        for _ in 0..<5 {
            let seen = await twins.ask()
            #expect(seen.status == 200)
            #expect(seen.text == "there")
            #expect(seen.url?.path == "/b")
        }
        #expect(twins.short.transport.sent.count == 2)
        twins.expectSameCounts()
    }

    @Test("Each cacheable status is returned unchanged", arguments: [203, 204, 300, 404, 410, 451, 503])
    func statuses(_ status: Int) async {
        let twins = ComparedTwins(
            ComparedSetting { _, _ in .respond(status, ["Cache-Control": "max-age=60"], body: status == 204 ? "" : "x")
            }
        )
        for _ in 0..<4 { #expect(await twins.ask().status == status) }
        #expect(twins.short.transport.sent.count == 1)
        twins.expectSameCounts()
    }

    @Test("The Age is that of the current second, and a Retry-After is reduced by it")
    func age() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=600", "Age": "7", "Retry-After": "100"] }
        await twins.warm()
        for step in 1...5 {
            twins.advance(.milliseconds(700))
            let seen = await twins.ask()
            #expect(seen.isByFacts)
            #expect(seen.fields["Age"] == "\(7 + step * 700 / 1_000)")
            #expect(seen.fields["Retry-After"] == "\(93 - step * 700 / 1_000)")
        }
    }

    @Test("With a Date within the second, the age also changes within the second")
    func apparentAge() async {
        // The clock begins in the middle of a second, so that the response seems half a second old.
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=9", "Date": "Tue, 14 Nov 2023 22:13:20 GMT"] }
        twins.setClock(by: .milliseconds(600))
        await twins.warm()
        for _ in 0..<30 {
            twins.advance(.milliseconds(290))
            await twins.ask()
        }
        #expect(twins.byFactsCount > 25)
    }

    @Test("With a lifetime of the cache's own the Age is still the response's", arguments: [0, 600])
    func fixedLifetime(_ skew: Int) async {
        let twins = ComparedTwins(.lone, Self.options { $0.fixedLifetime = .seconds(9) }) { _, _ in
            ["Cache-Control": "no-store", "Date": "Tue, 14 Nov 2023 22:13:20 GMT"]
        }
        twins.setClock(by: .milliseconds(skew))
        await twins.warm()
        for _ in 0..<30 {
            twins.advance(.milliseconds(290))
            await twins.ask()
        }
        #expect(twins.byFactsCount > 25)
        twins.advance(.milliseconds(300))
        await twins.ask()
        twins.advance(.milliseconds(1))
        #expect(await twins.ask().text == "2")
        twins.expectSameCounts()
    }

    @Test("The time-to-live hook works as before, whatever the spelling of the query")
    func timeToLive() async {
        let twins = ComparedTwins(
            .lone,
            Self.options {
                $0.fixedLifetime = .seconds(60)
                $0.query.sortsNames = true
            }
        )
        await twins.warm(.get("http://origin.example/a?x=1&y=2"))
        #expect(await twins.ask(.get("http://origin.example/a?y=2&x=1")).text == "1")
        await twins.warm(.get("http://origin.example/a?y=2&x=1"))
        twins.expectSameCounts()
    }

    @Test("If the clock is set back, an answer stays fresh with its age on arrival")
    func setBack() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Age": "5"] }
        await twins.warm()
        twins.advance(.seconds(30))
        await twins.ask()
        twins.setClock(by: .seconds(-3_600))
        let seen = await twins.ask()
        #expect(seen.isByFacts)
        #expect(seen.fields["Age"] == "5")
        twins.setClock(by: .seconds(7_200))
        #expect(await twins.ask().text == "2")
        twins.expectSameCounts()
    }

    @Test(
        "A response that needs revalidation is never ready",
        arguments: [
            "no-cache", "max-age=0", "no-store", "max-age=0, stale-while-revalidate=60", "must-revalidate",
        ]
    )
    func unready(_ cacheControl: String) async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": cacheControl, "ETag": "\"v\""] }
        for _ in 0..<4 { #expect(await !twins.ask().isByFacts) }
        twins.expectSameCounts()
    }

    @Test("In shared mode everyone's responses are ready for everyone, until there is one of the principal's own")
    func shared() async {
        let twins = ComparedTwins(.lone, .shared) { _, _ in ["Cache-Control": "max-age=5, s-maxage=60"] }
        let seen = await twins.warm()
        #expect(seen.decision?.freshnessLeft == 60)
        let personal = URLRequest.get("http://origin.example/a", ["Authorization": "Bearer a"])
        #expect(await !twins.ask(personal).isByFacts)
        #expect(await twins.ask(personal).isByFacts)
        #expect(await twins.ask().isByFacts)
        twins.expectSameCounts()
    }

    @Test(
        "A request with a Cookie borrows on the full path first, or has its own response",
        arguments: [true, false]
    )
    func borrowed(_ mayBorrow: Bool) async {
        let twins = ComparedTwins(.lone, Self.options { $0.cookiesMayBorrow = mayBorrow })
        await twins.warm()
        let request = URLRequest.get("http://origin.example/a", ["Cookie": "a=b"])
        for round in 0..<4 {
            let seen = await twins.ask(request)
            // The first has the digest of its cookie made; what it got is found then.
            #expect(seen.isByFacts == (round >= 1))
            #expect(seen.text == (mayBorrow ? "1" : "2"))
        }
        #expect(await twins.ask().isByFacts)
        // Once there is one of its own, that one answers.
        await twins.ask(.get("http://origin.example/a", ["Cookie": "a=b", "Cache-Control": "no-cache"]))
        for _ in 0..<4 { #expect(await twins.ask(request).text == (mayBorrow ? "2" : "3")) }
        twins.expectSameCounts()
    }

    @Test(
        "A request with ignored cookies is answered at once, except the first with these",
        arguments: [true, false]
    )
    func ignoredCookies(_ isImplicit: Bool) async {
        let twins = ComparedTwins()
        if isImplicit { twins.setImplicit(["Cookie": "AWSALB=1"]) }
        let request = URLRequest.get("http://origin.example/a", isImplicit ? [:] : ["Cookie": "AWSALB=1"])
        for round in 0..<4 {
            let seen = await twins.ask(request)
            #expect(seen.isByFacts == (round >= 1))
            #expect(seen.text == "1")
        }
        twins.setImplicit([:])
        #expect(await twins.ask().isByFacts)
        #expect(await twins.ask(request).isByFacts)
        twins.expectSameCounts()
    }

    @Test(
        "The newest response for a URL is used, even if it belongs to another query (No-Vary-Search)"
    )
    func searchVariance() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"u\")"] }
        await twins.ask(.get("http://origin.example/a?u=1"))
        let other = URLRequest.get("http://origin.example/a?u=2")
        for _ in 0..<3 { #expect(await twins.ask(other).text == "1") }
        var reload = CallOptions()
        reload.cache = .reload
        #expect(await twins.ask(other, reload).text == "2")
        #expect(await twins.ask(other).text == "2")
        #expect(await twins.ask(.get("http://origin.example/a?u=1")).text == "2")
        // Other paths are not concerned, once something is stored for them that answers no other query.
        await twins.ask(.get("http://origin.example/b"))
        #expect(await !twins.ask(.get("http://origin.example/b")).isByFacts)
        twins.expectSameCounts()
    }

    @Test("The fragment is not part of the key, and each spelling of a URL is returned as it was")
    func spellings() async {
        let twins = ComparedTwins()
        for url in ["http://origin.example/a", "http://ORIGIN.example:80/a", "http://origin.example/%61#x"] {
            let seen = await twins.ask(.get(url))
            #expect(seen.text == "1")
            #expect(await twins.ask(.get(url)).url?.absoluteString == url)
            #expect(await twins.ask(.get(url)).isByFacts)
        }
        twins.expectSameCounts()
    }

    @Test(
        "A cache that adds Cache-Status adds it to all of them, with the lifetime that is left",
        arguments: [false, true]
    )
    func cacheStatus(_ showsKey: Bool) async {
        let twins = ComparedTwins(
            .lone,
            Self.options {
                $0.cacheName = "test"
                $0.showsKeyInCacheStatus = showsKey
            }
        )
        for round in 0..<6 {
            let seen = await twins.ask()
            #expect(seen.fields["Cache-Status"]?.hasPrefix("test") == true)
            #expect(seen.isByFacts == (round > 0))
            twins.advance(.milliseconds(700))
        }
    }

    @Test("A recorder sees every request while it is attached")
    func recording() async throws {
        let twins = ComparedTwins()
        await twins.warm()
        let recorders = [HitRateRecorder(), HitRateRecorder()]
        twins.short.cache.record(with: recorders[0])
        twins.long.cache.record(with: recorders[1])
        for _ in 0..<3 { #expect(await !twins.ask().isByFacts) }
        twins.short.cache.record(with: nil)
        twins.long.cache.record(with: nil)
        #expect(await twins.ask().isByFacts)
        #expect(recorders.map(\.requestsSeen) == [3, 3])
    }
}
