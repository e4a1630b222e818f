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

@Suite("Ready answers: what a request says", .timeLimit(.minutes(20)))
struct ReadyAnswerTests {
    @Test("The third of equal plain requests is answered at once, in every chain", arguments: ReadyChain.allCases)
    func plain(_ chain: ReadyChain) async {
        let twins = ReadyTwins(chain) { _, _ in ["Cache-Control": "max-age=60", "X-A": "1"] }
        let seen = await twins.warm()
        #expect(seen.text == "1")
        #expect(seen.source == .fresh)
        #expect(seen.decision == CacheDecision(.hit, reason: .fresh, age: 0, freshnessLeft: 60))
        twins.expectSameCounts()
    }

    @Test(
        "A request with a field that bears on reuse goes the long way",
        arguments: [
            ["Cache-Control": "no-cache"], ["Cache-Control": "max-age=0"], ["cache-control": "no-store"],
            ["Pragma": "no-cache"], ["Range": "bytes=0-0"], ["If-None-Match": "\"v1\""], ["If-None-Match": "\"other\""],
            ["If-Modified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"], ["If-Match": "\"v1\""], ["If-Range": "\"v1\""],
            ["If-Unmodified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"], ["Authorization": "Bearer a"],
            ["Cookie": "a=b"], ["Host": "other.example"], ["CACHE-CONTROL": "min-fresh=100"],
        ]
    )
    func fields(_ fields: [String: String]) async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "ETag": "\"v1\""] }
        await twins.warm()
        #expect(await !twins.ask(.get("http://origin.example/a", fields)).isReady)
        #expect(await !twins.ask(.get("http://origin.example/a", fields)).isReady)
        twins.expectSameCounts()
    }

    @Test("A field that bears on nothing does not matter")
    func otherFields() async {
        let twins = ReadyTwins()
        await twins.warm()
        let seen = await twins.ask(.get("http://origin.example/a", ["X-Trace": "1", "Accept": "text/html"]))
        #expect(seen.isReady)
        #expect(seen.presented == ["Accept": "text/html", "X-Trace": "1"])
    }

    @Test("Only the values that Vary nominates find the ready answer of a variant, absent apart from empty")
    func vary() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant, Accept-Language"] }
        func request(_ fields: [String: String]) -> URLRequest { .get("http://origin.example/a", fields) }
        let german = ["X-Tenant": "a", "Accept-Language": "de, en"]
        await twins.warm(request(german))
        #expect(await twins.ask(request(["x-tenant": "a", "ACCEPT-LANGUAGE": "de, en"])).isReady)
        for other in [
            ["X-Tenant": "a"], ["X-Tenant": "b", "Accept-Language": "de, en"], [:],
            ["X-Tenant": "", "Accept-Language": "de, en"], ["X-Tenant": "a", "Accept-Language": "fr"],
        ] {
            #expect(await !twins.ask(request(other)).isReady, "\(other)")
        }
        // By now there are several variants, which are told apart the long way.
        #expect(await !twins.ask(request(german)).isReady)
        twins.expectSameCounts()
    }

    @Test("An equivalent value of a nominated field is found the long way, and then is ready itself")
    func equivalentValue() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"] }
        func request(_ codings: String) -> URLRequest { .get("http://origin.example/a", ["Accept-Encoding": codings]) }
        await twins.warm(request("gzip, br"))
        let other = await twins.ask(request("br,gzip"))
        #expect(!other.isReady && other.text == "1")
        #expect(await twins.ask(request("br,gzip")).isReady)
    }

    @Test("Values of a nominated field that Unicode calls equal are told apart by their bytes, as by the long way")
    func unicodeEquivalence() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Name"] }
        func request(_ name: String) -> URLRequest { .get("http://origin.example/a", ["X-Name": name]) }
        await twins.warm(request("caf\u{E9}"))
        let other = await twins.ask(request("cafe\u{301}"))
        #expect(other.text == "2")
        #expect(!other.isReady)
    }

    @Test("So are those of a field that the transport adds")
    func unicodeEquivalenceBeneath() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Name"] }
        twins.setImplicit(["X-Name": "caf\u{E9}"])
        await twins.warm()
        twins.setImplicit(["X-Name": "cafe\u{301}"])
        #expect(await twins.ask().text == "2")
    }

    @Test("A nominated field in several spellings at once has all their values")
    func severalSpellings() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        var both = URLRequest.get()
        both.allHTTPHeaderFields = ["X-Tenant": "a", "x-tenant": "b"]
        for _ in 0..<3 { await twins.ask(both) }
        for value in ["a", "b"] {
            let seen = await twins.ask(.get("http://origin.example/a", ["X-Tenant": value]))
            #expect(!seen.isReady)
        }
        twins.expectSameCounts()
    }

    @Test("What the transport adds beneath the hooks counts: a cookie jar that fills, a session field that changes")
    func implicitFields() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        await twins.warm()
        twins.setImplicit(["X-Tenant": "b"])
        #expect(await twins.ask().text == "2")
        twins.setImplicit(["Cookie": "session=1"])
        #expect(await !twins.ask().isReady)
        twins.setImplicit(["X-Other": "1"])
        #expect(await !twins.ask().isReady)
        twins.setImplicit([:])
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A directive that the transport adds goes the long way as one of the request's own does")
    func implicitDirective() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60"] }
        twins.setImplicit(["Cache-Control": "max-age=30"])
        for _ in 0..<3 { #expect(await !twins.ask().isReady) }
        twins.advance(.seconds(40))
        #expect(await twins.ask().text == "2")
        twins.expectSameCounts()
    }

    @Test("The same field from the transport and from the request are two things to find it by")
    func implicitAndOwn() async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        twins.setImplicit(["X-Tenant": "a"])
        await twins.warm()
        #expect(await twins.ask(.get("http://origin.example/a", ["X-Tenant": "a"])).text == "1")
        #expect(await twins.ask(.get("http://origin.example/a", ["X-Tenant": "b"])).text == "2")
        twins.expectSameCounts()
    }

    @Test("Other methods, among them HEAD, go the long way", arguments: ["HEAD", "POST", "PUT", "OPTIONS"])
    func methods(_ method: String) async {
        let twins = ReadyTwins()
        await twins.warm()
        #expect(await !twins.ask(.request(method, "http://origin.example/a")).isReady)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A HEAD that is answered by what a GET got keeps nothing ready")
    func head() async {
        let twins = ReadyTwins()
        await twins.ask()
        for _ in 0..<3 { await twins.ask(.request("HEAD", "http://origin.example/a")) }
        #expect(await !twins.ask().isReady)
    }

    @Test(
        "A cache policy of the request's own goes the long way",
        arguments: [
            .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
            .reloadRevalidatingCacheData,
        ] as [URLRequest.CachePolicy]
    )
    func cachePolicy(_ policy: URLRequest.CachePolicy) async {
        let twins = ReadyTwins { _, _ in ["Cache-Control": "max-age=60", "ETag": "\"v\""] }
        await twins.warm()
        var request = URLRequest.get()
        request.cachePolicy = policy
        #expect(await !twins.ask(request).isReady)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A GET with content goes the long way, wherever the content is", arguments: ReadyChain.allCases)
    func content(_ chain: ReadyChain) async {
        let twins = ReadyTwins(chain)
        await twins.warm()
        var request = URLRequest.get()
        request.httpBody = Data("x".utf8)
        #expect(await !twins.ask(request).isReady)
        #expect(await !twins.ask(.get(), body: .bytes(ByteChunk([1]))).isReady)
        request.httpBody = nil
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        #expect(await !twins.ask(request).isReady)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A hook that edits the request decides what is asked for")
    func edits() async {
        let twins = ReadyTwins(.hooked) { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        await twins.warm()
        twins.setEdit(["X-Tenant": "b"])
        #expect(await twins.ask().text == "2")
        twins.setEdit(["Authorization": "Bearer a"])
        #expect(await !twins.ask().isReady)
        twins.setEdit(["Cache-Control": "no-cache"])
        #expect(await !twins.ask().isReady)
        twins.expectSameCounts()
    }
}
