// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Failures of a proxy's calls", .timeLimit(.minutes(20)))
struct ProxyFailureTests {
    private func failure(_ step: ScriptedTransport.Step) async throws -> (any Error)? {
        let scripted = try ScriptedProxy([step])
        return await #expect(throws: (any Error).self) { try await scripted.proxy.invoke(.get, path: "a") }
    }

    @Test("E-T19: the text of a text/plain error is its localized description")
    func plainText() async throws {
        let step = ScriptedTransport.Step.respond(
            404,
            ["Content-Type": "text/plain; charset=utf-8", "X-Trace": "7"],
            body: "no such thing: naïve"
        )
        let error = try #require(try await failure(step))
        #expect(error.localizedDescription == "no such thing: naïve")
        let webServiceError = try #require(error as? WebServiceError)
        #expect(webServiceError.statusCode == 404)
        #expect(webServiceError.errorDescription == "no such thing: naïve")
        #expect(webServiceError.response?.fields["X-Trace"] == "7")
        #expect(webServiceError.content == Data("no such thing: naïve".utf8))
        #expect(webServiceError.response?.attempts.count == 1)
    }

    @Test(
        "E-T20: text is recognized by media type; otherwise the status is the description, and content is kept",
        arguments: [
            (["Content-Type": "TEXT/PLAIN"], "gone", "gone"),
            (["Content-Type": " text/plain ;format=flowed"], "gone", "gone"),
            (["Content-Type": "application/json"], #"{"detail":"gone"}"#, "Not Found"),
            (["Content-Type": "text/html"], "<p>", "Not Found"),
            (["Content-Type": "text/plainer"], "gone", "Not Found"),
            ([:], "gone", "Not Found"),
            (["Content-Type": "text/plain"], "", "Not Found"),
        ] as [(HeaderFields, String, String)]
    )
    func descriptions(fields: HeaderFields, body: String, description: String) async throws {
        let error = try #require(try await failure(.respond(404, fields, body: body)) as? WebServiceError)
        #expect(error.localizedDescription == description)
        #expect(error.content == Data(body.utf8))
    }

    @Test("E-T21: a text/plain error that is not UTF-8 is described by its status")
    func notUTF8() async throws {
        let transport = ScriptedTransport([.respond(400, ["Content-Type": "text/plain"])])
        let hook = BodyReplacingHook(bytes: [0x6E, 0x61, 0xEF, 0x76, 0x65])
        let proxy = WebServiceProxy(transport: transport, baseURL: try url("https://h"), hooks: [hook])
        let error = await #expect(throws: WebServiceError.self) { try await proxy.invoke(.get, path: "a") }
        #expect(error?.localizedDescription == "Bad Request")
        #expect(error?.content == Data([0x6E, 0x61, 0xEF, 0x76, 0x65]))
    }

    @Test(
        "Every status outside 200 to 299 is a failure, even an unregistered one",
        arguments: [199, 300, 418, 599]
    )
    func statuses(status: Int) async throws {
        let error = try #require(try await failure(.respond(status)) as? WebServiceError)
        #expect(error.statusCode == status)
        #expect(!error.localizedDescription.isEmpty)
    }

    @Test("E-T24: a 301 without a Location, one that is returned, and a 304 are failures")
    func redirections() async throws {
        let statuses = try await [
            failure(.respond(301)), failure(.respond(304)),
        ].map { ($0 as? WebServiceError)?.statusCode }
        #expect(statuses == [301, 304])
        let scripted = try ScriptedProxy([.respond(301, ["Location": "/b"])]) { $0.redirects = .returnToCaller }
        let error = await #expect(throws: WebServiceError.self) { try await scripted.proxy.invoke(.get, path: "a") }
        #expect(error?.statusCode == 301)
        #expect(error?.response?.fields["Location"] == "/b")
    }

    @Test("E-T24: a 301 is followed below, and a cache handles a 304 there")
    func consumedBelow() async throws {
        let scripted = try ScriptedProxy(
            [
                .respond(301, ["Location": "/b"]),
                .respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "[1]"),
                .respond(301, ["Location": "/b"]),
                .respond(304, ["ETag": "\"v\""]),
            ],
            cache: .inMemory()
        )
        #expect(try await scripted.proxy.invoke(.get, path: "a") == [1])
        let again: DecodedResponse<[Int]> = try await scripted.proxy.response(.get, path: "a")
        #expect(again.value == [1])
        #expect(again.response.source == .revalidated)
        #expect(scripted.urls.last == "https://h/b")
        #expect(scripted.field("If-None-Match") == "\"v\"")
    }

    @Test("The error has the wait that the server asks for")
    func retryAfter() async throws {
        let error = try #require(try await failure(.respond(503, ["Retry-After": "7"])) as? WebServiceError)
        #expect(error.retryAfter == .seconds(7))
    }

    @Test("An error response longer than the limit still has its status")
    func longError() async throws {
        var scripted = try ScriptedProxy([.respond(500, body: "12345"), .respond(200, body: "12345")])
        scripted.proxy.contentLimit = 4
        let proxy = scripted.proxy
        let error = await #expect(throws: WebServiceError.self) { try await proxy.invoke(.get, path: "a") }
        #expect(error?.statusCode == 500)
        let other = await #expect(throws: URLError.self) { try await proxy.invoke(.get, path: "a") }
        #expect(other?.serviceError?.code == .bodyTooLarge)
    }

    @Test("A cancelled call throws CancellationError")
    func cancellation() async throws {
        let scripted = try ScriptedProxy([.silence]) { $0.clock = ManualClock() }
        let proxy = scripted.proxy
        let call = Task { try await proxy.invoke(.get, path: "a") }
        try await scripted.transport.waitForSends(1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
    }
}

/// Puts other content into each response.
private struct BodyReplacingHook: ServiceHook {
    let bytes: [UInt8]
    var scope: HookScope { .message }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        response.body = ResponseBody(ByteChunk(copying: bytes))
    }
}
