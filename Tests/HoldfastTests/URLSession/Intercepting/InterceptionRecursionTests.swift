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

@Suite("A pipeline never intercepts itself", .timeLimit(.minutes(20)))
struct InterceptionRecursionTests {
    /// A transport that is known only after its pipeline intercepts.
    private final class LateTransport: Transport {
        private let transport = Mutex<(any Transport)?>(nil)

        func become(_ other: any Transport) {
            transport.withLock { $0 = other }
        }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let transport = try #require(self.transport.withLock { $0 })
            return try await transport.send(request, body: body, context: context)
        }
    }

    /// A transport of somebody's, over a session of somebody's.
    private struct OwnTransport: Transport {
        let session: URLSession

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let (data, response) = try await session.data(for: request)
            let head = try #require(response as? HTTPURLResponse)
            return Response(
                status: StatusCode(head.statusCode),
                body: ResponseBody(ByteChunk(copying: data)),
                url: head.url
            )
        }
    }

    enum Form: CaseIterable {
        case configuration, session, own
    }

    private static func observed(_ transport: any Transport, _ recorder: EventRecorder) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        return Pipeline(transport: transport, configuration: configuration)
    }

    @Test(
        "A transport made from the intercepted configuration itself sends one request for one call",
        arguments: Form.allCases
    )
    func itself(_ form: Form) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "once") }
        let recorder = EventRecorder()
        let late = LateTransport()
        let pipeline = Self.observed(late, recorder)
        defer { pipeline.stopIntercepting() }
        let configuration = URLSessionConfiguration.ephemeral.intercepted(by: pipeline)
        let session = URLSession(configuration: configuration)
        switch form {
        case .configuration: late.become(URLSessionTransport(configuration: configuration))
        case .session: late.become(URLSessionTransport(session: session))
        case .own: late.become(OwnTransport(session: session))
        }
        #expect(try await session.data(from: server.url()).0 == Data("once".utf8))
        #expect(recorder.events(.callEnded).count == 1)
        #expect(server.requests.count == 1)
        #expect(try await pipeline.data(from: server.url()).0 == Data("once".utf8))
        #expect(recorder.events(.callEnded).count == 2)
        #expect(server.requests.count == 2)
    }

    @Test("With two pipelines in one configuration, the last one is asked first, each by its own choice")
    func two() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "plain") }
        let first = Pipeline(transport: ScriptedTransport([.respond(body: "first")], repeatsLastStep: true))
        let second = Pipeline(transport: ScriptedTransport([.respond(body: "second")], repeatsLastStep: true))
        defer {
            first.stopIntercepting()
            second.stopIntercepting()
        }
        let configuration = URLSessionConfiguration.ephemeral
            .intercepted(by: first, matching: { $0.url?.path != "/neither" })
            .intercepted(by: second, matching: { $0.url?.path == "/second" })
        let session = URLSession(configuration: configuration)
        for (path, text) in [("/first", "first"), ("/second", "second"), ("/neither", "plain")] {
            #expect(try await session.data(from: server.url(path)).0 == Data(text.utf8))
        }
        var upload = URLRequest(url: server.url("/second"))
        upload.httpMethod = "POST"
        #if !canImport(Darwin)
            #expect(try await session.upload(for: upload, from: Data("x".utf8)).0 == Data("plain".utf8))
            #expect(server.requests.last?.text == "x")
        #endif
    }

    @Test("A pipeline whose transport is a pipeline, or a session that another one intercepts, is nested on purpose")
    func nested() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "once") }
        let recorders = [EventRecorder(), EventRecorder()]
        let inner = Self.observed(URLSessionTransport(), recorders[0])
        let innerSession = InterceptedClient(inner).session
        for transport in [inner, OwnTransport(session: innerSession)] as [any Transport] {
            let outer = Self.observed(transport, recorders[1])
            #expect(try await InterceptedClient(outer).get(server.url()).text == "once")
            outer.stopIntercepting()
        }
        inner.stopIntercepting()
        #expect(recorders.map { $0.events(.callEnded).count } == [2, 2])
        #expect(server.requests.count == 2)
    }

    @Test("A direct call does not return through its own transport's session, where it would wait for itself")
    func direct() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "once") }
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let late = LateTransport()
        let pipeline = Pipeline(transport: late, cache: .inMemory(), configuration: configuration)
        defer { pipeline.stopIntercepting() }
        let session = URLSession(configuration: URLSessionConfiguration.ephemeral.intercepted(by: pipeline))
        late.become(OwnTransport(session: session))
        let call = Task { try await pipeline.data(from: server.url()).0 }
        let watch = Task {
            // Only a call that would wait for ever comes to this, and no busy machine does.
            try await Task.sleep(for: .seconds(600))
            call.cancel()
        }
        #expect(try await call.value == Data("once".utf8))
        watch.cancel()
        #expect(recorder.events(.callEnded).count == 1)
        #expect(server.requests.count == 1)
    }
}
