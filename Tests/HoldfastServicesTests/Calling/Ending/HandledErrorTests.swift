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

/// Goes where a 409 points to, as long as it does.
private struct Following: Request {
    typealias Result = String
    let log: CallFixtures.Log
    var content: HttpBody = .data(Data("content".utf8))
    var timeout: Duration?
    var options = CallOptions()
    var method: HttpMethod { .put }
    var routes: HttpRoute { ["a"] }
    var header: HttpHeader { ["X-Key": "k", "X-Plain": "p"] }
    var body: HttpBody { content }

    func handle(_ error: any Error, response: Response) -> ErrorHandling {
        let content = response.body.bytesInMemory.map { String(decoding: $0, as: UTF8.self) } ?? "unread"
        log.note("\(response.status.rawValue) \(content)")
        guard response.status.rawValue == 409, let url = URL(string: content) else { return .error(error) }
        return .redirect(to: url)
    }
}

@Suite("How a request handles an error", .timeLimit(.minutes(20)))
struct HandledErrorTests {
    private let log = CallFixtures.Log()

    private func service() -> AnyHttpService {
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.findAuthorization = { .custom(key: "X-API-Key", value: "secret") }
        service.header = ["Authorization": "secret", "Cookie": "secret"]
        return service
    }

    @Test(
        "A redirect forwards method, content and fields, but not credentials if the origin changes",
        arguments: [
            ("https://api.example.com/b", true), ("https://other.example/b", false),
            ("http://api.example.com/b", false),
        ]
    )
    func redirected(_ url: String, _ isOwn: Bool) async throws {
        let transport = ScriptedTransport([.respond(409, body: url), .respond(200, body: "ok")])
        var request = Following(log: log)
        request.options.credentialFields = ["X-Key"]
        let answer = try await CallFixtures.client(service(), transport).response(to: request)
        #expect(answer.value == "ok")
        let last = try #require(transport.sent.last)
        #expect(last.request.url?.absoluteString == url)
        #expect(answer.urlRequest.url?.absoluteString == url)
        #expect(last.request.httpMethod == "PUT")
        #expect(last.body == ByteChunk(copying: "content".utf8))
        #expect(last.field("X-Plain") == "p")
        #expect(
            ["Authorization", "Cookie", "X-API-Key"].map { last.field($0) }
                == (isOwn ? ["secret", "secret", "secret"] : [nil, nil, nil])
        )
        #expect(last.field("X-Key") == (isOwn ? "k" : nil))
        #expect(log.entries == ["a.schedule", "409 \(url)", "a.success(ok, network(attempts: 1))"])
    }

    @Test("A call is redirected 16 times at most, and then fails with the last refusal")
    func limit() async throws {
        let transport = ScriptedTransport([.respond(409, body: "https://api.example.com/b")], repeatsLastStep: true)
        let client = CallFixtures.client(service(), transport)
        let error = await #expect(throws: ServiceError.self) { try await Following(log: log).schedule(with: client) }
        #expect(error?.response?.status.rawValue == 409)
        #expect(transport.sent.count == 17)
        #expect(log.count("a.failure(unacceptable-status)") == 1)
    }

    @Test("An error without a response is not handled, nor one that follows a refused response of another attempt")
    func transportError() async throws {
        let factory = AnyRetrierFactory(checksAttempts: true) { _ in
            CallFixtures.ClosureRetrier { attempt in attempt.number < 2 ? .retryNow : .stop(.retrierDeclined) }
        }
        var service = service()
        service.retrierFactory = factory
        let broken = ScriptedTransport.Step.fail(progress: .bodySent)
        let cut = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let transport = ScriptedTransport([.stream(200, chunks: ["o"], failure: cut), broken])
        let client = CallFixtures.client(service, transport)
        let error = await #expect(throws: ServiceError.self) { try await Following(log: log).schedule(with: client) }
        #expect(error?.code == .connectionLost)
        #expect(!log.entries.contains { $0.hasPrefix("200") })
    }

    @Test("Content that can be read once is not redirected")
    func oneShot() async throws {
        struct Single: ByteSource {
            let chunk = CountWatch()
            func next() async throws -> ByteChunk? {
                chunk.increment()
                return chunk.count == 1 ? ByteChunk(copying: "x".utf8) : nil
            }
            func cancel() {}
        }
        var request = Following(log: log)
        request.content = HttpBody { HttpBody.Encoded(contentType: nil, content: .oneShot(Single())) }
        let transport = ScriptedTransport([.respond(409, body: "https://api.example.com/b"), .respond(200)])
        let client = CallFixtures.client(service(), transport)
        let failing = request
        await #expect(throws: ServiceError.self) { try await failing.schedule(with: client) }
        #expect(transport.sent.count == 1)
    }

    @Test("A refused response is handled with its content, also if the call's time is limited")
    func contentUnderDeadline() async throws {
        let transport = ScriptedTransport([.stream(404, chunks: ["not ", "here"])])
        var request = Following(log: log)
        request.timeout = .seconds(5)
        let client = CallFixtures.client(service(), transport, clock: ManualClock())
        let failing = request
        let error = await #expect(throws: ServiceError.self) { try await failing.schedule(with: client) }
        #expect(error?.code == .unacceptableStatus)
        #expect(log.entries.contains("404 not here"))
    }

    @Test("Nothing of a failed call stays in memory once its error is released", arguments: [200, 500])
    func memory(_ status: Int) async throws {
        /// Refuses each response unread.
        struct Unread: Request {
            typealias Result = Int
            func receive(_ response: inout Response) async throws -> Int { throw CallFixtures.NotText() }
            func decode(_ data: Data) throws -> Int { 0 }
        }
        /// Has the pipeline watch contents, which then know their call.
        struct Deaf: EventObserver {
            func observe(_ event: ServiceEvent) {}
        }
        weak var held: EndlessContent?
        var service = service()
        service.pipelineConfiguration.observers = [Deaf()]
        do {
            let content = EndlessContent(reached: CountWatch())
            held = content
            let transport = AnsweringTransport { [weak content] in
                Response(status: StatusCode(rawValue: status), body: content.map { ResponseBody($0) } ?? ResponseBody())
            }
            let client = CallFixtures.client(service, transport)
            await #expect(throws: CallFixtures.NotText.self) { try await Unread().schedule(with: client) }
            await client.pipeline.drain()
        }
        #expect(held == nil)
    }
}
