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

@Suite("The prepare steps of one call", .timeLimit(.minutes(20)))
struct PrepareOptionTests {
    /// Steps that add their names and the attempt to the field Steps.
    private static func steps(_ names: String...) -> [PrepareStep] {
        names.map { name in
            { request, context in
                let before = request.value(forHTTPHeaderField: "Steps").map { $0 + " " } ?? ""
                request.setValue("\(before)\(name)\(context.attempt)", forHTTPHeaderField: "Steps")
            }
        }
    }

    private static func options(_ steps: [PrepareStep]) -> CallOptions {
        var options = CallOptions()
        options.prepare = steps
        return options
    }

    private func pipeline(
        _ transport: any Transport,
        cache: HTTPCache? = nil,
        _ steps: [PrepareStep] = []
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.prepare = steps
        return Pipeline(
            transport: transport,
            cache: cache,
            retrierFactory: .default,
            configuration: configuration
        )
    }

    private func sent(_ transport: ScriptedTransport) -> [String?] {
        transport.sent.map { $0.request.value(forHTTPHeaderField: "Steps") }
    }

    @Test("They run after the pipeline's own, in order, again for each attempt, on the request as the hooks left it")
    func order() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200)])
        let pipeline = pipeline(transport, Self.steps("a", "b"))
        _ = try await pipeline.send(.get(), options: Self.options(Self.steps("c", "d")))
        #expect(sent(transport) == ["a1 b1 c1 d1", "a2 b2 c2 d2", "a3 b3 c3 d3"])
    }

    @Test("They run for each hop of a redirect")
    func hops() async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": "/b"]), .respond(200)])
        _ = try await pipeline(transport).send(.get(), options: Self.options(Self.steps("c")))
        #expect(sent(transport) == ["c1", "c1"])
    }

    @Test("They run once in nested pipelines: in the outermost, before what the inner adds")
    func nested() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(200)])
        let outer = pipeline(pipeline(transport, Self.steps("inner")), Self.steps("outer"))
        _ = try await outer.send(.get(), options: Self.options(Self.steps("call")))
        #expect(sent(transport) == ["outer1 call1 inner1", "outer1 call1 inner2"])
    }

    @Test("If a step throws, the call ends before anything is sent")
    func refusing() async throws {
        let transport = ScriptedTransport([.respond(200)])
        let pipeline = pipeline(transport)
        await #expect(throws: Refused(reason: "unsigned")) {
            try await pipeline.send(.get(), options: Self.options([{ _, _ in throw Refused(reason: "unsigned") }]))
        }
        #expect(transport.sent.isEmpty)
    }

    @Test("Law 3: if a step may have changed the principal, the response is not stored; otherwise it is")
    func principal() async throws {
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"])], repeatsLastStep: true)
        let cache = HTTPCache.inMemory()
        let pipeline = pipeline(transport, cache: cache)
        for field in ["Authorization", "Cookie", "X-API-Key", "X-Unheard-Of"] {
            var options = Self.options([{ request, _ in request.setValue("bob", forHTTPHeaderField: field) }])
            options.credentialFields = ["X-API-Key"]
            let response = try await pipeline.send(.get(), options: options)
            _ = try await response.body.collect()
            #expect(response.cacheDecision?.storage == .notStored(.otherPrincipal))
            #expect(cache.store.statistics.entryCount == 0)
        }
        let harmless = Self.options([{ request, _ in request.setValue("1", forHTTPHeaderField: "X-Request-ID") }])
        _ = try await pipeline.send(.get(), options: harmless).body.collect()
        #expect(cache.store.statistics.entryCount == 1)
    }

    @Test(
        "RFC 9110 §5.1, §5.5: an ambiguous field is never passed to a transport, no matter who set it",
        arguments: [
            ("X-A\r\nX-Injected", "1"), ("X A", "1"), ("X-A:", "1"), ("X-A", "1\r\nX-Injected: 1"), ("X-A", "1\n"),
            ("X-A", "a\0b"),
        ],
        [false, true]
    )
    func injected(_ field: (name: String, value: String), byStep: Bool) async throws {
        let transport = ScriptedTransport([.respond(200)], repeatsLastStep: true)
        // What callers and hooks set is looked at by the transports of the package.
        let pipeline = Pipeline(transport: byStep ? transport : URLSessionTransport())
        var options = CallOptions()
        var request = URLRequest.get("http://127.0.0.1:1/")
        if byStep {
            options.prepare = [{ request, _ in request.setValue(field.value, forHTTPHeaderField: field.name) }]
        } else {
            request.setValue(field.value, forHTTPHeaderField: field.name)
        }
        do {
            _ = try await pipeline.send(request, options: options)
            // Foundation takes no such value over in the first place.
            let sent = transport.sent.first?.request.allHTTPHeaderFields ?? [:]
            #expect(sent.allSatisfy { !($0.key + $0.value).utf8.contains(where: { $0 < 32 }) && $0.key != "X A" })
        } catch let error as ServiceError {
            // Without the value that Foundation refused the request goes out, and nobody is there.
            let isRefused = error.code == .badRequest || !byStep && request.allHTTPHeaderFields?.isEmpty ?? true
            #expect(isRefused && error.progress == .notSent)
            #expect(transport.sent.isEmpty)
        }
    }
}
