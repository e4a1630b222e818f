// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A hook of the pipeline above the acceptance, by closures.
private struct PipelineHook: ServiceHook {
    var log = CallFixtures.Log()
    var answer: @Sendable () -> Response? = { nil }
    var edit: @Sendable (inout Response) throws -> Void = { _ in }
    var rescue: @Sendable () -> Response? = { nil }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        log.note("schedule")
        return answer()
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.note("success")
        try edit(&response)
    }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        log.note("failure(\(CallFixtures.word(error)))")
        return rescue()
    }
}

@Suite("Hooks of the pipeline around typed calls", .timeLimit(.minutes(20)))
struct CallHookTests {
    private let decodings = CallFixtures.Log()

    private func request() -> AnyRequest<String> {
        AnyRequest(routes: ["x"]) { [decodings] data in
            let text = String(decoding: data, as: UTF8.self)
            decodings.note(text)
            if text == "bad" { throw CallFixtures.NotText() }
            return text
        }
    }

    private func response(_ status: Int, _ text: String) -> Response {
        Response(
            status: StatusCode(rawValue: status),
            body: ResponseBody(ByteChunk(copying: text.utf8)),
            source: .synthesized
        )
    }

    private func client(
        _ hook: PipelineHook,
        _ steps: [ScriptedTransport.Step],
        log: CallFixtures.Log = CallFixtures.Log()
    ) -> (ServiceClient<AnyHttpService>, ScriptedTransport) {
        let transport = ScriptedTransport(steps)
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.hooks = [hook]
        return (CallFixtures.client(service, transport), transport)
    }

    @Test("A response from a hook is accepted and decoded like any other")
    func answers() async throws {
        var hook = PipelineHook()
        let answer = response(200, "kept")
        hook.answer = { answer }
        let (client, transport) = client(hook, [])
        #expect(try await request().schedule(with: client) == "kept")
        #expect(transport.sent.isEmpty)
        #expect(hook.log.entries == ["schedule"])
    }

    @Test("A refused response from a hook is a failure, and the request may handle it")
    func answersBadly() async throws {
        var hook = PipelineHook()
        let answer = response(503, "closed")
        hook.answer = { answer }
        let log = CallFixtures.Log()
        let (client, _) = client(hook, [], log: log)
        let error = await #expect(throws: ServiceError.self) { try await request().schedule(with: client) }
        #expect(error?.code == .unacceptableStatus)
        #expect(log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)"])
    }

    @Test("Content is decoded once unless a hook replaces it or edits the head")
    func replaces() async throws {
        let (untouched, _) = client(PipelineHook(), [.respond(200, body: "sent")])
        #expect(try await request().schedule(with: untouched) == "sent")
        #expect(decodings.entries == ["sent"])

        var replacing = PipelineHook()
        replacing.edit = { $0.body = ResponseBody(ByteChunk(copying: "edited".utf8)) }
        let (replaced, _) = client(replacing, [.respond(200, body: "sent")])
        #expect(try await request().schedule(with: replaced) == "edited")
        #expect(decodings.entries == ["sent", "sent", "edited"])

        var editing = PipelineHook()
        editing.edit = { $0.fields["X"] = "1" }
        let (edited, _) = client(editing, [.respond(200, body: "sent")])
        #expect(try await request().schedule(with: edited) == "sent")
        #expect(decodings.count("sent") == 4)
    }

    @Test(
        "A hook sees one outcome: a failure, whether of status or of content",
        arguments: [(500, "x"), (200, "bad")]
    )
    func oneOutcome(_ status: Int, _ body: String) async throws {
        let hook = PipelineHook()
        let (client, _) = client(hook, [.respond(status, body: body)])
        await #expect(throws: ServiceError.self) { try await request().schedule(with: client) }
        #expect(
            hook.log.entries == ["schedule", "failure(\(status == 500 ? "unacceptable-status" : "decoding-failed"))"]
        )
    }

    @Test("A hook that rescues a failed call makes it a success, decoded from its response")
    func rescues() async throws {
        var hook = PipelineHook()
        let rescue = response(200, "rescued")
        hook.rescue = { rescue }
        let log = CallFixtures.Log()
        let (client, _) = client(hook, [.respond(500)], log: log)
        #expect(try await request().schedule(with: client) == "rescued")
        #expect(!log.entries.contains { $0.hasPrefix("process") })
    }

    @Test("S-T8: hooks of the pipeline do not see a request that could not be built")
    func unbuildable() async throws {
        let hook = PipelineHook()
        let log = CallFixtures.Log()
        let (client, _) = client(hook, [], log: log)
        var request = request()
        request.body = HttpBody { throw CallFixtures.NotText() }
        let failing = request
        await #expect(throws: ServiceError.self) { try await failing.schedule(with: client) }
        #expect(hook.log.entries.isEmpty)
        #expect(log.entries == ["a.failure(encoding-failed)", "process(encoding-failed)"])
    }

    @Test("S-T37: hooks and cache that a service computes each time are read once by a client")
    func computed() async throws {
        struct Computing: HttpService {
            let log: CallFixtures.Log
            var apiUrl: any UrlConvertible { "api.example.com" }
            var cache: HTTPCache? { log.note("cache"); return .inMemory() }
            var hooks: [any ServiceHook] { log.note("hooks"); return [] }
            var requestHooks: [any RequestHook] { log.note("requestHooks"); return [] }
        }
        let log = CallFixtures.Log()
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "ok")])
        let client = ServiceClient(Computing(log: log), transport: transport)
        for _ in 0..<2 { #expect(try await request().schedule(with: client) == "ok") }
        #expect(transport.sent.count == 1)
        #expect(log.entries.sorted() == ["cache", "hooks", "requestHooks"])
    }
}
