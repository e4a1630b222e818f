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

@Suite("Fresh hits: what the request says", .timeLimit(.minutes(20)))
struct FreshHitAnswerTests {
    @Test("The third of equal plain requests is answered at once, with any hooks", arguments: ComparedChain.allCases)
    func plain(_ chain: ComparedChain) async {
        let twins = ComparedTwins(chain) { _, _ in ["Cache-Control": "max-age=60", "X-A": "1"] }
        let seen = await twins.warm()
        #expect(seen.text == "1")
        #expect(seen.source == .fresh)
        #expect(seen.decision == CacheDecision(.hit, reason: .fresh, age: 0, freshnessLeft: 60))
        twins.expectSameCounts()
    }

    @Test(
        "A request with a field that affects reuse takes the full path",
        arguments: [
            ["Cache-Control": "no-cache"], ["Cache-Control": "max-age=0"], ["cache-control": "no-store"],
            ["Pragma": "no-cache"], ["Range": "bytes=0-0"], ["If-None-Match": "\"v1\""], ["If-None-Match": "\"other\""],
            ["If-Modified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"], ["If-Match": "\"v1\""], ["If-Range": "\"v1\""],
            ["If-Unmodified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"], ["Host": "other.example"],
            ["CACHE-CONTROL": "min-fresh=100"],
        ]
    )
    func fields(_ fields: [String: String]) async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "ETag": "\"v1\""] }
        await twins.warm()
        #expect(await !twins.ask(.get("http://origin.example/a", fields)).isByFacts)
        #expect(await !twins.ask(.get("http://origin.example/a", fields)).isByFacts)
        twins.expectSameCounts()
    }

    @Test(
        "A request with a credential is answered at once from its principal's response, and nobody else is",
        arguments: [
            ["Authorization": "Bearer a"], ["Cookie": "a=b"], ["Authorization": "Bearer a", "Cookie": "a=b"],
            ["authorization": ""],
        ]
    )
    func credentials(_ fields: [String: String]) async {
        let twins = ComparedTwins { request, number in
            ["Cache-Control": "private, max-age=60", "X-Call": "\(number)", "Vary": "Authorization, Accept"]
        }
        let personal = URLRequest.get("http://origin.example/a", fields)
        let seen = await twins.warm(personal)
        #expect(seen.fields["X-Call"] == "0")
        for other in [[:], ["Authorization": "Bearer b"], ["Cookie": "a=c"], ["Cookie": "a=b", "Authorization": "x"]] {
            let seen = await twins.ask(.get("http://origin.example/a", other))
            #expect(!seen.isByFacts && seen.text != "1", "\(other)")
        }
        #expect(await twins.ask(personal).text == "1")
        twins.expectSameCounts()
    }

    @Test("A principal that the call names is answered at once, whatever the credentials are")
    func namedPrincipal() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "private, max-age=60"] }
        var (alice, bob) = (CallOptions(), CallOptions())
        (alice.principal, bob.principal) = ("alice", "")
        await twins.warm(.get(), alice)
        #expect(await twins.ask(.get("http://origin.example/a", ["Authorization": "t"]), alice).isByFacts)
        #expect(await twins.ask(.get(), bob).text == "2")
        #expect(await twins.ask(.get()).text == "3")
        twins.expectSameCounts()
    }

    @Test("A response that varies with a credential is not answered at once if the call names the principal")
    func namedPrincipalVaries() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "private, max-age=60", "Vary": "Cookie"] }
        var options = CallOptions()
        options.principal = "alice"
        for cookie in ["a=1", "a=1", "a=1", "a=2", "a=2", "a=1"] {
            let seen = await twins.ask(.get("http://origin.example/a", ["Cookie": cookie]), options)
            #expect(!seen.isByFacts)
            #expect(seen.text == (cookie == "a=1" ? "1" : "2"))
        }
    }

    @Test(
        "A directive that a fresh response satisfies is obeyed at once",
        arguments: [
            ("max-age=600", true), ("max-age=5", true), ("max-age=4", false), ("min-fresh=50", true),
            ("min-fresh=60", false), ("max-stale", true), ("only-if-cached", true), ("no-cache", false),
            ("no-store", false), ("max-age=0", false), ("no-transform, x=y", true), ("", true), ("max-age=\"9\"", true),
        ]
    )
    func directives(_ value: String, _ isByFacts: Bool) async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60"] }
        await twins.warm()
        twins.advance(.seconds(5))
        let seen = await twins.ask(.get("http://origin.example/a", ["Cache-Control": value]))
        #expect(seen.isByFacts == isByFacts)
        twins.expectSameCounts()
    }

    @Test("A field without effect does not matter")
    func otherFields() async {
        let twins = ComparedTwins()
        await twins.warm()
        let seen = await twins.ask(.get("http://origin.example/a", ["X-Trace": "1", "Accept": "text/html"]))
        #expect(seen.isByFacts)
        #expect(seen.presented == ["Accept": "text/html", "X-Trace": "1"])
    }

    @Test(
        "Options that do not affect a hit leave the answer ready, and the others are obeyed",
        arguments: [
            ("none", true), ("timeout", true), ("interim", true), ("name", true), ("shown", true), ("no time", true),
            ("lower case", false), ("other target", false), ("accepted", true), ("principal", false), ("reload", false),
        ]
    )
    func options(_ kind: String, _ isByFacts: Bool) async throws {
        let twins = ComparedTwins()
        await twins.warm()
        var options = CallOptions()
        switch kind {
        case "timeout": options.timeout = .seconds(9)
        case "no time": options.timeout = .zero
        case "interim": options.onInterimResponse = { _ in }
        case "name": options.operationName = "list"
        case "accepted": options.acceptance = .successful
        case "principal": options.principal = "alice"
        case "reload": options.cache = .reload
        case "shown": options.exactHead = try .init(method: .get, origin: "http://origin.example", requestTarget: "/a")
        case "lower case":
            options.exactHead = try .init(method: "get", origin: "http://origin.example", requestTarget: "/a")
        case "other target":
            options.exactHead = try .init(method: .get, origin: "http://origin.example", requestTarget: "/%61")
        default: break
        }
        let request = options.exactHead?.makeRequest() ?? .get("http://origin.example/a")
        let seen = await twins.ask(request, options, note: kind)
        #expect(seen.isByFacts == isByFacts)
        twins.expectSameCounts(note: kind)
    }

    @Test("An observer gets only the events that it names, and those of a hit if it asks for all")
    func observedEvents() async throws {
        let named = NamedEvents([.attemptStarted, .storeFailed])
        let all = EventRecorder()
        let sets: [[any EventObserver]] = [[named], [named, all]]
        for observers in sets {
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "1")])
            var configuration = PipelineConfiguration()
            configuration.observers = observers
            let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20))
            let pipeline = Pipeline(transport: transport, cache: cache, configuration: configuration)
            for _ in 0..<4 { #expect(try await pipeline.send(.get()).status == .ok) }
            await pipeline.drain()
        }
        #expect(named.seen.map(\.description) == ["attempt-started", "attempt-started"])
        let ended = all.events.filter { $0.name == .callEnded }
        let decided = all.events.filter { $0.name == .cacheDecided }
        #expect(ended.count == 4)
        #expect(decided.count == 4 && decided.allSatisfy { $0.detail == $0.cacheDecision?.description })
    }

    @Test("Only the values that Vary nominates find a variant's ready answer; absent differs from empty")
    func vary() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant, Accept-Language"] }
        func request(_ fields: [String: String]) -> URLRequest { .get("http://origin.example/a", fields) }
        let german = ["X-Tenant": "a", "Accept-Language": "de, en"]
        await twins.warm(request(german))
        #expect(await twins.ask(request(["x-tenant": "a", "ACCEPT-LANGUAGE": "de, en"])).isByFacts)
        for other in [
            ["X-Tenant": "a"], ["X-Tenant": "b", "Accept-Language": "de, en"], [:],
            ["X-Tenant": "", "Accept-Language": "de, en"], ["X-Tenant": "a", "Accept-Language": "fr"],
        ] {
            #expect(await !twins.ask(request(other)).isByFacts, "\(other)")
        }
        // By now there are several variants.
        #expect(await twins.ask(request(german)).isByFacts)
        twins.expectSameCounts()
    }

    @Test("An equivalent value of a nominated field takes the full path")
    func equivalentValue() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"] }
        func request(_ codings: String) -> URLRequest { .get("http://origin.example/a", ["Accept-Encoding": codings]) }
        await twins.warm(request("gzip, br"))
        let other = await twins.ask(request("br,gzip"))
        #expect(!other.isByFacts && other.text == "1")
        #expect(await !twins.ask(request("br,gzip")).isByFacts)
        #expect(await twins.ask(request("gzip, br")).isByFacts)
    }

    @Test("Values that are equal in Unicode but not in bytes are different, as on the full path")
    func unicodeEquivalence() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Name"] }
        func request(_ name: String) -> URLRequest { .get("http://origin.example/a", ["X-Name": name]) }
        await twins.warm(request("caf\u{E9}"))
        let other = await twins.ask(request("cafe\u{301}"))
        #expect(other.text == "2")
        #expect(!other.isByFacts)
    }

    @Test("The same applies to a field that the transport adds")
    func unicodeEquivalenceBelow() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Name"] }
        twins.setImplicit(["X-Name": "caf\u{E9}"])
        await twins.warm()
        twins.setImplicit(["X-Name": "cafe\u{301}"])
        #expect(await twins.ask().text == "2")
    }

    @Test("A nominated field in several spellings has all their values")
    func severalSpellings() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        var both = URLRequest.get()
        both.allHTTPHeaderFields = ["X-Tenant": "a", "x-tenant": "b"]
        for _ in 0..<3 { await twins.ask(both) }
        for value in ["a", "b"] {
            let seen = await twins.ask(.get("http://origin.example/a", ["X-Tenant": value]))
            #expect(!seen.isByFacts)
        }
        twins.expectSameCounts()
    }

    @Test("What the transport adds below the hooks counts: a filling cookie jar, a changing session field")
    func implicitFields() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        await twins.warm()
        twins.setImplicit(["X-Tenant": "b"])
        #expect(await twins.ask().text == "2")
        twins.setImplicit(["Cookie": "session=1"])
        let other = await twins.ask()
        #expect(!other.isByFacts && other.text == "1")
        twins.setImplicit(["X-Other": "1"])
        #expect(await twins.ask().text == "1")
        twins.setImplicit([:])
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A directive that the transport adds is obeyed like one in the request")
    func implicitDirective() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60"] }
        twins.setImplicit(["Cache-Control": "max-age=30"])
        await twins.warm()
        twins.advance(.seconds(30))
        #expect(await twins.ask().isByFacts)
        twins.advance(.seconds(1))
        #expect(await twins.ask().text == "2")
        twins.expectSameCounts()
    }

    @Test("The same field counts as different if it comes from the transport or from the request")
    func implicitAndOwn() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        twins.setImplicit(["X-Tenant": "a"])
        await twins.warm()
        #expect(await twins.ask(.get("http://origin.example/a", ["X-Tenant": "a"])).text == "1")
        #expect(await twins.ask(.get("http://origin.example/a", ["X-Tenant": "b"])).text == "2")
        twins.expectSameCounts()
    }

    @Test("Other methods, including HEAD, take the full path", arguments: ["HEAD", "POST", "PUT", "OPTIONS"])
    func methods(_ method: String) async {
        let twins = ComparedTwins()
        await twins.warm()
        #expect(await !twins.ask(.request(method, "http://origin.example/a")).isByFacts)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A HEAD that is answered from a GET's response takes the full path")
    func head() async {
        let twins = ComparedTwins()
        await twins.ask()
        for _ in 0..<3 { #expect(await !twins.ask(.request("HEAD", "http://origin.example/a")).isByFacts) }
        #expect(await twins.ask().isByFacts)
    }

    @Test(
        "A request with its own cache policy takes the full path",
        arguments: [
            .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
            .reloadRevalidatingCacheData,
        ] as [URLRequest.CachePolicy]
    )
    func cachePolicy(_ policy: URLRequest.CachePolicy) async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "ETag": "\"v\""] }
        await twins.warm()
        var request = URLRequest.get()
        request.cachePolicy = policy
        #expect(await !twins.ask(request).isByFacts)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A GET with content takes the full path, wherever the content is", arguments: ComparedChain.allCases)
    func content(_ chain: ComparedChain) async {
        let twins = ComparedTwins(chain)
        await twins.warm()
        var request = URLRequest.get()
        request.httpBody = Data("x".utf8)
        #expect(await !twins.ask(request).isByFacts)
        #expect(await !twins.ask(.get(), body: .bytes(ByteChunk([1]))).isByFacts)
        request.httpBody = nil
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        #expect(await !twins.ask(request).isByFacts)
        await twins.ask()
        twins.expectSameCounts()
    }

    @Test("A hook that edits the request determines the key")
    func edits() async {
        let twins = ComparedTwins(.hooked) { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        await twins.warm()
        twins.setEdit(["X-Tenant": "b"])
        #expect(await twins.ask().text == "2")
        twins.setEdit(["Authorization": "Bearer a"])
        #expect(await !twins.ask().isByFacts)
        twins.setEdit(["Cache-Control": "no-cache"])
        #expect(await !twins.ask().isByFacts)
        twins.expectSameCounts()
    }

    @Test("RFC 9111 §4: the newest response answers, also after several updates have brought the same Vary")
    func varyOfTwoUpdates() async {
        let twins = ComparedTwins(
            ComparedSetting { request, number in
                let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
                var fields: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"\(language)\""]
                guard request.value(forHTTPHeaderField: "If-None-Match") == nil else {
                    fields["Vary"] = "Accept-Encoding"
                    return .respond(304, fields)
                }
                fields["Vary"] = "Accept-Language"
                fields["Cache-Control"] = "max-age=10"
                return .respond(200, fields, body: "\(number + 1)")
            }
        )
        func get(_ language: String, _ codings: String) -> URLRequest {
            .get("http://origin.example/a", ["Accept-Language": language, "Accept-Encoding": codings])
        }
        await twins.ask(get("de", "gzip, br"))
        await twins.ask(get("en", "gzip, br"))
        twins.advance(.seconds(20))
        await twins.ask(get("en", "br, gzip"))
        twins.advance(.seconds(5))
        var again = CallOptions()
        again.cache = .revalidate
        await twins.ask(get("de", "gzip, br"), again)
        for _ in 0..<3 { #expect(await twins.ask(get("fr", "br, gzip")).text == "1") }
    }

    @Test("RFC 9111 §4: the newest response answers, also if an update has brought another Vary")
    func varyOfAnUpdate() async {
        let twins = ComparedTwins(
            ComparedSetting { request, number in
                let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
                var fields: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"\(language)\""]
                guard request.value(forHTTPHeaderField: "If-None-Match") == nil else {
                    fields["Vary"] = "Accept-Encoding"
                    return .respond(304, fields)
                }
                fields["Vary"] = "Accept-Language"
                if language == "de" { fields["Cache-Control"] = "max-age=10" }
                return .respond(200, fields, body: "\(number + 1)")
            }
        )
        func get(_ language: String, _ codings: String) -> URLRequest {
            .get("http://origin.example/a", ["Accept-Language": language, "Accept-Encoding": codings])
        }
        await twins.ask(get("de", "gzip, br"))
        await twins.ask(get("en", "gzip, br"))
        twins.advance(.seconds(20))
        await twins.ask(get("de", "gzip, br"))
        for _ in 0..<3 { #expect(await twins.ask(get("en", "br, gzip")).text == "1") }
    }
}

/// Keeps the names of the events that it asked for.
private final class NamedEvents: EventObserver {
    let observedEvents: Set<ServiceEvent.Name>?
    private let names = Mutex<[ServiceEvent.Name]>([])

    init(_ names: Set<ServiceEvent.Name>) {
        observedEvents = names
    }

    var seen: [ServiceEvent.Name] { names.withLock { $0 } }

    func observe(_ event: ServiceEvent) {
        names.withLock { $0.append(event.name) }
    }
}
