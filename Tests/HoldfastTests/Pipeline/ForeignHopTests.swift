// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("What was added for the first origin is not sent to others", .timeLimit(.minutes(20)))
struct ForeignHopTests {
    /// Who adds a field.
    enum Adder: CaseIterable, Sendable {
        case preparation, callPreparation, messageHook, callHook
    }

    typealias Edit = @Sendable (inout URLRequest) -> Void

    /// A pipeline and options whose steps or hooks, as `adder` says, edit each request.
    private static func pipeline(
        _ transport: any Transport,
        _ adder: Adder,
        cache: HTTPCache? = nil,
        trusted: CredentialScope = [],
        edit: @escaping Edit
    ) -> (pipeline: Pipeline, options: CallOptions) {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        configuration.trustedOrigins = trusted
        var options = CallOptions()
        var hooks: [any ServiceHook] = []
        let step: PrepareStep = { request, _ in edit(&request) }
        switch adder {
        case .preparation: configuration.prepare = [step]
        case .callPreparation: options.prepare = [step]
        case .messageHook, .callHook:
            var hook = RecordingHook(name: "h", log: HookLog(), scope: adder == .callHook ? .call : .message)
            hook.schedule = { request, _ in
                edit(&request)
                return nil
            }
            hooks = [hook]
        }
        return (Pipeline(transport: transport, cache: cache, hooks: hooks, configuration: configuration), options)
    }

    private static func redirect(to location: String) -> ScriptedTransport {
        ScriptedTransport([.respond(302, ["Location": location]), .respond(200)])
    }

    private static func sent(_ transport: ScriptedTransport, _ name: String) -> [String?] {
        transport.sent.map { $0.request.value(forHTTPHeaderField: name) }
    }

    @Test(
        "What hooks and prepare steps add goes to the first origin only, except fields without credentials",
        arguments: Adder.allCases,
        [
            ("/b", true), ("http://other.example/b", false), ("https://origin.example/b", false),
            ("http://origin.example:8080/b", false), ("http://trusted.example/b", true),
        ]
    )
    func added(_ adder: Adder, to hop: (location: String, isSent: Bool)) async throws {
        let transport = Self.redirect(to: hop.location)
        let (pipeline, options) = Self.pipeline(transport, adder, trusted: ["http://trusted.example"]) { request in
            for name in ["X-Api-Key", "X-Signature", "From", "Traceparent", "Accept-Language"] {
                request.setValue("added", forHTTPHeaderField: name)
            }
        }
        _ = try await pipeline.send(.get(), options: options)
        for name in ["X-Api-Key", "X-Signature", "From"] {
            #expect(Self.sent(transport, name) == ["added", hop.isSent ? "added" : nil])
        }
        for name in ["Traceparent", "Accept-Language"] {
            #expect(Self.sent(transport, name) == ["added", "added"])
        }
    }

    @Test(
        "Authorization too, unless a step sets it again for a trusted origin",
        arguments: Adder.allCases,
        [false, true]
    )
    func authorization(_ adder: Adder, isTrusted: Bool) async throws {
        let transport = Self.redirect(to: "http://other.example/b")
        let (pipeline, options) = Self.pipeline(
            transport,
            adder,
            trusted: isTrusted ? ["http://other.example"] : []
        ) { $0.setValue("Bearer t", forHTTPHeaderField: "Authorization") }
        _ = try await pipeline.send(.get(), options: options)
        #expect(
            Self.sent(transport, "Authorization") == ["Bearer t", isTrusted && adder != .callHook ? "Bearer t" : nil]
        )
    }

    @Test("A predicate is called with the hop's own URL", arguments: ["a.example", "b.example"])
    func predicate(_ host: String) async throws {
        let transport = Self.redirect(to: "https://\(host)/b")
        let (pipeline, options) = Self.pipeline(
            transport,
            .preparation,
            trusted: .matching { $0.host == "a.example" }
        ) { $0.setValue("k", forHTTPHeaderField: "X-Api-Key") }
        _ = try await pipeline.send(.get(), options: options)
        #expect(Self.sent(transport, "X-Api-Key") == ["k", host == "a.example" ? "k" : nil])
    }

    @Test(
        "The caller's fields are forwarded if no step changes or removes them",
        arguments: Adder.allCases
    )
    func callers(_ adder: Adder) async throws {
        let transport = Self.redirect(to: "http://other.example/b")
        let (pipeline, options) = Self.pipeline(transport, adder) { request in
            request.setValue("same", forHTTPHeaderField: "x-left")
            request.setValue("changed", forHTTPHeaderField: "X-Changed")
            request.setValue(nil, forHTTPHeaderField: "X-Removed")
        }
        let own = ["X-Left": "same", "X-Changed": "own", "X-Removed": "own", "X-Untouched": "own"]
        _ = try await pipeline.send(.get("http://origin.example/a", own), options: options)
        #expect(Self.sent(transport, "X-Left") == ["same", "same"])
        #expect(Self.sent(transport, "X-Changed") == ["changed", nil])
        #expect(Self.sent(transport, "X-Removed") == [nil, nil])
        #expect(Self.sent(transport, "X-Untouched") == ["own", "own"])
    }

    @Test("Back at the first origin, fields that are added again are sent", arguments: Adder.allCases)
    func back(_ adder: Adder) async throws {
        let transport = ScriptedTransport([
            .respond(302, ["Location": "http://other.example/b"]),
            .respond(302, ["Location": "http://origin.example/c"]), .respond(200),
        ])
        let (pipeline, options) = Self.pipeline(transport, adder) { $0.setValue("k", forHTTPHeaderField: "X-Api-Key") }
        _ = try await pipeline.send(.get(), options: options)
        #expect(Self.sent(transport, "X-Api-Key") == ["k", nil, adder == .callHook ? nil : "k"])
    }

    @Test(
        "A key in the query, or a password in the URL, is withheld like a field; what a step removes stays removed",
        arguments: [Adder.preparation, .messageHook],
        [
            ("?key=k", "http://other.example/b?s=1&r=2"), ("?s=1&r=2&key=k", "http://other.example/b?s=1&r=2"),
            ("?r=2", "http://other.example/b?r=2"),
        ]
    )
    func query(_ adder: Adder, edit: (query: String, sent: String)) async throws {
        let transport = Self.redirect(to: "http://other.example/b?s=1&r=2")
        let (pipeline, options) = Self.pipeline(transport, adder) { request in
            let host = request.url?.host ?? ""
            request.url = URL(string: "http://user:password@\(host)/b" + edit.query)
        }
        _ = try await pipeline.send(.get(), options: options)
        #expect(
            transport.sent.map { $0.request.url?.absoluteString } == [
                "http://user:password@origin.example/b" + edit.query, edit.sent,
            ]
        )
    }

    @Test("The cache below the hooks looks up a hop as it is sent")
    func lookedUp() async throws {
        let transport = ScriptedTransport { request in
            request.url?.host == "origin.example"
                ? .respond(302, ["Location": "http://other.example/b"])
                : .respond(
                    200,
                    ["Cache-Control": "max-age=60", "Vary": "X-Api-Key"],
                    body: request.value(forHTTPHeaderField: "X-Api-Key") ?? "nobody"
                )
        }
        let (pipeline, options) = Self.pipeline(transport, .messageHook, cache: .inMemory()) { request in
            request.setValue("k", forHTTPHeaderField: "X-Api-Key")
        }
        #expect(try await pipeline.send(.get(), options: options).read == "nobody")
        let again = try await pipeline.send(.get(), options: options)
        #expect(again.source == .fresh)
        #expect(try await again.read == "nobody")
        // Where the call begins at the other origin, the key belongs there.
        let direct = try await pipeline.send(.get("http://other.example/b"), options: options)
        #expect(try await direct.read == "k")
    }

    @Test("A pipeline used as another one's transport adds nothing to a foreign hop either", arguments: Adder.allCases)
    func nested(_ adder: Adder) async throws {
        for isTrusted in [false, true] {
            let transport = Self.redirect(to: "http://other.example/b")
            let inner = Self.pipeline(transport, adder, trusted: isTrusted ? ["http://other.example"] : []) { request in
                request.setValue("k", forHTTPHeaderField: "X-Api-Key")
            }
            var configuration = PipelineConfiguration()
            // Of an inner pipeline the steps of its own are taken alone.
            configuration.prepare = adder == .callPreparation ? inner.options.prepare : []
            configuration.trustedOrigins = isTrusted ? ["http://other.example"] : []
            _ = try await Pipeline(transport: inner.pipeline, configuration: configuration).send(.get())
            #expect(Self.sent(transport, "X-Api-Key") == ["k", isTrusted ? "k" : nil])
        }
    }

    @Test("The credential of an inner pipeline goes to a foreign hop only if its scope lists the origin")
    func nestedAuthorization() async throws {
        let scopes: [(CredentialScope, String?)] = [
            (.matching { _ in true }, nil), (["http://origin.example"], nil),
            (["http://origin.example", "http://other.example"], "Bearer t"),
        ]
        for (scope, expected) in scopes {
            let transport = Self.redirect(to: "http://other.example/b")
            var configuration = PipelineConfiguration()
            configuration.authorization = .bearer(token: "t", for: scope) { _ in throw Refused() }
            let inner = Pipeline(transport: transport, cache: .inMemory(), configuration: configuration)
            _ = try await Pipeline(transport: inner).send(.get())
            #expect(transport.credentials == ["Bearer t", expected])
        }
    }

    @Test("The retry rules' fields and the pipeline's own credential have separate rules")
    func ownFields() async throws {
        let transport = ScriptedTransport([
            .respond(302, ["Location": "http://other.example/b"]), .respond(503), .respond(200),
        ])
        var rules = RetryRules.default
        rules.attemptField = "X-Attempt"
        rules.timeLeftField = "X-Time-Left"
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.callTimeout = .seconds(1000)
        configuration.authorization = .bearer(token: "t", for: ["http://origin.example", "http://other.example"]) { _ in
            throw Refused()
        }
        configuration.prepare = [{ request, _ in request.setValue("k", forHTTPHeaderField: "X-Api-Key") }]
        let seen = HookLog()
        var hook = RecordingHook(name: "m", log: HookLog(), scope: .message)
        hook.schedule = { request, _ in
            request.setValue("h", forHTTPHeaderField: "X-Hook")
            return nil
        }
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: .backoff(rules),
            hooks: [hook, AnnouncedFields(log: seen)],
            configuration: configuration
        )
        #expect(try await pipeline.send(.get()).status == .ok)
        #expect(transport.credentials == ["Bearer t", "Bearer t", "Bearer t"])
        #expect(Self.sent(transport, "X-Attempt") == [nil, nil, "2"])
        #expect(Self.sent(transport, "X-Time-Left").allSatisfy { $0 != nil })
        #expect(Self.sent(transport, "X-Api-Key") == ["k", nil, nil])
        #expect(Self.sent(transport, "X-Hook") == ["h", nil, nil])
        #expect(seen.entries == ["X-Time-Left", "X-Attempt X-Time-Left"])
    }

    @Test("The caller's own fields are known even if hooks may have changed them, through nested pipelines too")
    func callerFields() async throws {
        let log = HookLog()
        let note: PrepareStep = { _, context in
            log.add(context.callerFields.map { "\($0.sorted { $0.key < $1.key }.map(\.key))" } ?? "none")
        }
        let hook = RecordingHook(name: "c", log: HookLog()) { request, _ in
            request.setValue("h", forHTTPHeaderField: "X-Hook")
            return nil
        }
        var configuration = PipelineConfiguration()
        configuration.prepare = [note]
        let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
        let request = URLRequest.get("http://origin.example/a", ["X-Own": "1"])
        let plain = Pipeline(transport: transport, cache: .inMemory(), configuration: configuration)
        _ = try await plain.send(request)
        let hooked = Pipeline(transport: transport, hooks: [hook], configuration: configuration)
        _ = try await hooked.send(request)
        _ = try await Pipeline(transport: plain, hooks: [hook]).send(request)
        _ = try await Pipeline(transport: hooked, hooks: [hook]).send(request)
        _ = try await Pipeline(transport: hooked).send(request)
        #expect(log.entries == ["none"] + Array(repeating: #"["X-Own"]"#, count: 4))
    }

    @Test("A transport is told which hops are foreign, and asked what it adds to them")
    func transports() async throws {
        let transport = ChoosyTransport(inner: Self.redirect(to: "http://other.example/b"))
        let log = HookLog()
        var hook = RecordingHook(name: "m", log: HookLog(), scope: .message)
        hook.schedule = { request, context in
            log.add("\(context.isForeignHop) \(context.presentedFields(of: request)["X-Session"] ?? "none")")
            return nil
        }
        _ = try await Pipeline(transport: Pipeline(transport: transport), hooks: [hook]).send(.get())
        #expect(log.entries == ["false s", "true none"])
        #expect(Self.sent(transport.inner, "X-Session") == ["s", nil])
    }

    @Test("Fields that may hold a credential are not among the harmless ones, in any letter case")
    func list() {
        for name in ["accept", "User-Agent", "If-None-Match", "X-B3-TraceId", "RANGE", "content-type"] {
            #expect(NonCredentialFields.contains(named: name))
        }
        for name in [
            "Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "From", "Referer", "Origin", "Host", "If",
            "Idempotency-Key", "X-Forwarded-For", "X-Anything", "", "no name",
        ] {
            #expect(!NonCredentialFields.contains(named: name))
        }
    }
}

/// Notes which fields of each response's request the retry rules have set.
private struct AnnouncedFields: ServiceHook {
    let log: HookLog
    var scope: HookScope { .message }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add((context.exchange?.announcedFields ?? []).map(\.rawName).joined(separator: " "))
    }
}

/// Adds a field below the hooks, but on foreign hops.
private struct ChoosyTransport: Transport {
    let inner: ScriptedTransport
    var enforcesDeadline: Bool { true }

    func implicitFields(for request: URLRequest) -> HeaderFields { ["X-Session": "s"] }

    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        context.isForeignHop ? [:] : implicitFields(for: request)
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var request = request
        for line in implicitFields(for: request, context: context) {
            request.setValue(line.value, forHTTPHeaderField: line.name.rawName)
        }
        return try await inner.send(request, body: body, context: context)
    }
}
