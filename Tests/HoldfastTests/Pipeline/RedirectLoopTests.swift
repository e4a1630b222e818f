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

@Suite("Law 4: only the pipeline follows redirects", .timeLimit(.minutes(20)))
struct RedirectLoopTests {
    @Test("Each hop goes through the message hooks under its own URI; call hooks see one call")
    func hops() async throws {
        let log = HookLog()
        var message = RecordingHook(name: "m", log: log, scope: .message)
        message.schedule = { request, _ in
            log.add(request.url?.path ?? "")
            return nil
        }
        let transport = ScriptedTransport([
            .respond(301, ["Location": "/b"]), .respond(302, ["Location": "http://other.example/c"]), .respond(200),
        ])
        let response = try await Pipeline(transport: transport, hooks: [RecordingHook(name: "c", log: log), message])
            .send(.get())
        #expect(response.url?.absoluteString == "http://other.example/c")
        #expect(
            log.entries == [
                "c.schedule",
                "m.schedule", "/a", "m.success(301, network(attempts: 1))",
                "m.schedule", "/b", "m.success(302, network(attempts: 1))",
                "m.schedule", "/c", "m.success(200, network(attempts: 1))",
                "c.success(200, network(attempts: 1))",
            ]
        )
    }

    @Test(
        "Method and body over a redirect (RFC 9110 §15.4)",
        arguments: [
            (301, "POST", "GET", ""), (302, "POST", "GET", ""), (303, "PUT", "GET", ""), (307, "POST", "POST", "body"),
            (308, "PUT", "PUT", "body"), (303, "HEAD", "HEAD", ""), (301, "PUT", "PUT", "body"),
        ]
    )
    func methods(status: Int, method: String, expected: String, body: String) async throws {
        let transport = ScriptedTransport([.respond(status, ["Location": "/b"]), .respond(200)])
        _ = try await Pipeline(transport: transport).send(
            .request(method, "http://origin.example/a", ["Content-Type": "text/plain"]),
            body: .bytes(ByteChunk(copying: "body".utf8))
        )
        let second = try #require(transport.sent.last)
        #expect(second.request.httpMethod == expected)
        #expect(second.body == ByteChunk(copying: body.utf8))
        #expect((second.request.value(forHTTPHeaderField: "Content-Type") == nil) == body.isEmpty)
    }

    @Test(
        "Credentials stay with their origin",
        arguments: [("/b", true), ("https://origin.example/b", false), ("http://x.example/b", false)]
    )
    func credentials(location: String, kept: Bool) async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": location]), .respond(200)])
        _ = try await Pipeline(transport: transport).send(
            .get("http://origin.example/a", ["Authorization": "Bearer t", "Cookie": "a=b", "X-Other": "1"])
        )
        #expect(transport.sent.count == 2)
        let request = try #require(transport.sent.last?.request)
        #expect((request.value(forHTTPHeaderField: "Authorization") != nil) == kept)
        #expect((request.value(forHTTPHeaderField: "Cookie") != nil) == kept)
        #expect(request.value(forHTTPHeaderField: "X-Other") == "1")
    }

    @Test("A loop ends after 20 hops with an error that carries the last response")
    func limit() async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": "/a"])], repeatsLastStep: true)
        do {
            _ = try await Pipeline(transport: transport).send(.get())
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .tooManyRedirects)
            #expect(error.response?.status.rawValue == 302)
        }
        #expect(transport.sent.count == 21)
    }

    @Test("A failing hop is retried at that hop, and the chain does not restart")
    func retriedPerHop() async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": "/b"]), .respond(503), .respond(200)])
        _ = try await Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in AlwaysRetrier(delay: .zero) }
        ).send(.get())
        #expect(transport.sent.map { $0.request.url?.path } == ["/a", "/b", "/b"])
    }

    @Test(
        "A Location that is not quite a URI is followed as browsers encode it",
        arguments: [
            ("/x?page[number]=2", "/x?page%5Bnumber%5D=2"), ("/p[1]", "/p%5B1%5D"), ("/x?q=100%", "/x?q=100%25"),
        ]
    )
    func encoded(location: String, sent: String) async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": location]), .respond(200)])
        _ = try await Pipeline(transport: transport).send(.get("http://origin.example/a"))
        #expect(transport.sent.last?.request.url?.absoluteString == "http://origin.example" + sent)
    }

    @Test(
        "A 3xx that cannot be followed is returned unchanged",
        arguments: [
            (302, "mailto:a@b.example"), (302, ""), (304, "/b"), (302, "http://"),
        ]
    )
    func handedUp(status: Int, location: String) async throws {
        let transport = ScriptedTransport([.respond(status, location.isEmpty ? [:] : ["Location": location])])
        let response = try await Pipeline(transport: transport).send(.get())
        #expect(response.status.rawValue == status)
        #expect(transport.sent.count == 1)
    }

    @Test("A one-shot body is not sent to another place: the 307 is returned")
    func oneShot() async throws {
        let transport = ScriptedTransport([.respond(307, ["Location": "/b"])])
        let response = try await Pipeline(transport: transport).send(
            .request("POST", "http://origin.example/a"),
            body: .oneShot(OneChunk("x"))
        )
        #expect(response.status.rawValue == 307)
    }

    @Test("A redirect's body is read to its end if it is short, and abandoned if it is long or breaks")
    func redirectBodies() async throws {
        let long = String(repeating: "x", count: 40 << 10)
        let bodies: [(ScriptedTransport.Step, Bool)] = [
            (.stream(302, ["Location": "/b"], chunks: ["mo", "ved"]), true),
            (.stream(302, ["Location": "/b"], chunks: [long, long, long]), false),
            (.stream(302, ["Location": "/b"], chunks: [long, long, long], length: 120 << 10), false),
            (
                .stream(302, ["Location": "/b"], chunks: ["mo"], failure: ServiceError(.connectionLost, "scripted")),
                false
            ),
        ]
        for (step, isWhole) in bodies {
            let recorder = EventRecorder()
            var configuration = PipelineConfiguration()
            configuration.observers = [recorder]
            configuration.clock = ManualClock()
            let transport = ScriptedTransport([step, .respond(200, body: "end")])
            let pipeline = Pipeline(transport: transport, configuration: configuration)
            #expect(try await pipeline.send(.get()).status == .ok)
            await pipeline.drain()
            #expect(recorder.events(.bodyEnded).map { $0.error == nil } == [isWhole])
        }
    }

    @Test(
        "Content that was sent encrypted is not sent unencrypted: a 307 or 308 from https to http is returned",
        arguments: [307, 308]
    )
    func exposedContent(status: Int) async throws {
        for (target, isFollowed) in [("http://origin.example/b", false), ("https://origin.example/b", true)] {
            let transport = ScriptedTransport([.respond(status, ["Location": "\(target)"]), .respond(200)])
            let pipeline = Pipeline(transport: transport)
            let response = try await pipeline.send(
                .request("POST", "https://origin.example/a"),
                body: .bytes(ByteChunk(copying: "x".utf8))
            )
            #expect(response.status.rawValue == (isFollowed ? 200 : status))
            #expect(transport.sent.count == (isFollowed ? 2 : 1))
        }
        let transport = ScriptedTransport([.respond(status, ["Location": "http://origin.example/b"]), .respond(200)])
        #expect(try await Pipeline(transport: transport).send(.get("https://origin.example/a")).status == .ok)
    }

    @Test("RFC 9110 §13.1: a conditional write is not sent to another origin; the 308 is returned")
    func conditionalWrite() async throws {
        for (location, isFollowed) in [("https://origin.example/b", false), ("http://origin.example/b", true)] {
            let transport = ScriptedTransport([.respond(308, ["Location": "\(location)"]), .respond(200)])
            let response = try await Pipeline(transport: transport).send(
                .request("PUT", "http://origin.example/a", ["If-Match": "\"1\""]),
                body: .bytes(ByteChunk(copying: "x".utf8))
            )
            #expect(response.status.rawValue == (isFollowed ? 200 : 308))
            let conditions = transport.sent.map { $0.request.value(forHTTPHeaderField: "If-Match") }
            #expect(conditions == Array(repeating: "\"1\"", count: isFollowed ? 2 : 1))
        }
    }

    @Test("The error of a redirect loop lists the attempts of all its hops")
    func attemptsOfLoop() async throws {
        let transport = ScriptedTransport([.respond(302, ["Location": "/a"])], repeatsLastStep: true)
        let error = await #expect(throws: ServiceError.self) { try await Pipeline(transport: transport).send(.get()) }
        #expect(error?.code == .tooManyRedirects && error?.attempts.count == 21)
    }

    @Test("A redirect whose body never ends is followed at once")
    func stalledRedirectBody() async throws {
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let transport = StalledBodyTransport(
            inner: ScriptedTransport([.respond(302, ["Location": "/b"]), .respond(200)])
        )
        let pipeline = Pipeline(transport: transport, configuration: configuration)
        #expect(try await pipeline.send(.get()).status == .ok)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        await pipeline.drain()
    }

    @Test("If the last hop was answered without a send, call hooks see the call's request and not the previous hop's")
    func requestAfterCachedHop() async throws {
        let seen = HookLog()
        var call = RecordingHook(name: "c", log: HookLog())
        call.success = { _, request in seen.add(request.url?.path ?? "") }
        var answering = RecordingHook(name: "m", log: HookLog(), scope: .message)
        answering.schedule = { request, _ in
            request.url?.path == "/b" ? Response(status: .ok, source: .fresh) : nil
        }
        var configuration = PipelineConfiguration()
        configuration.prepare = [{ request, _ in request.url = URL(string: "http://origin.example/prepared") }]
        let transport = ScriptedTransport([.respond(302, ["Location": "/b"])])
        _ = try await Pipeline(transport: transport, hooks: [call, answering], configuration: configuration).send(
            .get()
        )
        #expect(seen.entries == ["/a"])
    }

    @Test("A message hook's state belongs to one hop, a call hook's to the call")
    func hookState() async throws {
        struct Mark: Sendable {}
        func marking(_ name: String, _ scope: HookScope, _ log: HookLog) -> RecordingHook {
            var hook = RecordingHook(name: name, log: HookLog(), scope: scope)
            hook.schedule = { _, context in
                log.add("\(name) \(context[Mark.self] == nil ? "new" : "known")")
                context[Mark.self] = Mark()
                return nil
            }
            return hook
        }
        let log = HookLog()
        let transport = ScriptedTransport([.respond(302, ["Location": "/b"]), .respond(200)])
        _ = try await Pipeline(transport: transport, hooks: [marking("m", .message, log), marking("c", .call, log)])
            .send(.get())
        #expect(log.entries == ["c new", "m new", "m new"])
    }

    @Test("A pipeline configured to return redirects follows none")
    func policy() async throws {
        var configuration = PipelineConfiguration()
        configuration.redirects = .returnToCaller
        let transport = ScriptedTransport([.respond(302, ["Location": "/b"])])
        let response = try await Pipeline(transport: transport, configuration: configuration).send(.get())
        #expect(response.status.rawValue == 302)
    }
}

/// Gives every redirect a body that never ends.
struct StalledBodyTransport: Transport {
    let inner: ScriptedTransport

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await inner.send(request, body: body, context: context)
        if response.status.isRedirection { response.body = ResponseBody(StalledBody()) }
        return response
    }
}

/// A body without bytes and without an end.
struct StalledBody: ByteSource {
    private let never = CountWatch()

    func next() async throws -> ByteChunk? {
        try await never.wait(for: 1)
        return nil
    }

    func cancel() {}
}
