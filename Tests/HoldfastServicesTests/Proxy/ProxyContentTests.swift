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

private struct Event: Codable, Sendable, Equatable {
    var name: String
    var at: Date
}

private struct Unencodable: Encodable {
    func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(self, EncodingError.Context(codingPath: [], debugDescription: "never"))
    }
}

/// Decodes from any JSON, null included.
private struct Anything: Decodable, Sendable {
    init(from decoder: any Decoder) throws {}
}

private struct Refusal: Error, Equatable {}

@Suite("Content of a proxy's calls", .timeLimit(.minutes(20)))
struct ProxyContentTests {
    @Test("E-T16: arguments and a body are both sent, in the URL and as JSON")
    func both() async throws {
        let scripted = try ScriptedProxy([.respond(200, body: #"{"name":"b","at":2}"#)])
        let event = Event(name: "a", at: Date(timeIntervalSince1970: 0.001))
        let answer: Event = try await scripted.proxy.invoke(.post, path: "events", arguments: ["n": 1], body: event)
        #expect(answer == Event(name: "b", at: Date(timeIntervalSince1970: 0.002)))
        #expect(scripted.urls == ["https://h/api/events?n=1"])
        #expect(scripted.content == #"{"at":1,"name":"a"}"#)
        #expect(scripted.field("Content-Type") == "application/json")
        #expect(scripted.transport.sent.first?.request.httpMethod == "POST")
    }

    @Test("E-T17: content without a type is application/octet-stream, and a type without content is not sent")
    func contentTypes() async throws {
        let scripted = try ScriptedProxy([.respond()], repeatsLastStep: true)
        try await scripted.proxy.invoke(.put, path: "a", content: Data("x".utf8))
        #expect(scripted.field("Content-Type") == "application/octet-stream")
        #expect(scripted.content == "x")
        try await scripted.proxy.invoke(.put, path: "a", content: Data("x".utf8), contentType: "text/csv")
        #expect(scripted.field("Content-Type") == "text/csv")
        try await scripted.proxy.invoke(.delete, path: "a", contentType: "text/csv")
        #expect(scripted.field("Content-Type") == nil)
        #expect(scripted.content == "")
    }

    @Test("A type in the proxy's headers overrides the defaults, and the call's own overrides it")
    func headerContentType() async throws {
        let scripted = try ScriptedProxy([.respond()], repeatsLastStep: true)
        let proxy = scripted.proxy.with(headers: ["content-type": "application/vnd.api+json"])
        try await proxy.invoke(.post, path: "a", body: [1])
        #expect(scripted.field("Content-Type") == "application/vnd.api+json")
        try await proxy.invoke(.post, path: "a", content: Data("x".utf8))
        #expect(scripted.field("Content-Type") == "application/vnd.api+json")
        try await proxy.invoke(.post, path: "a", content: Data("x".utf8), contentType: "text/csv")
        #expect(scripted.field("Content-Type") == "text/csv")
    }

    @Test("E-T18: a body that cannot be encoded fails with its EncodingError, and nothing is sent")
    func encodingError() async throws {
        let hook = RecordingRequestHook()
        let scripted = try ScriptedProxy(requestHooks: [hook])
        await #expect(throws: EncodingError.self) {
            try await scripted.proxy.invoke(.post, path: "a", body: Unencodable())
        }
        await #expect(throws: EncodingError.self) {
            let _: [Int] = try await scripted.proxy.invoke(.post, path: "a", body: Double.infinity)
        }
        #expect(scripted.transport.sent.isEmpty)
        #expect(hook.failures == ["encoding-failed", "encoding-failed"])
    }

    @Test("E-T22: without a result any 2xx is a success, whatever its content", arguments: [200, 201, 204, 299])
    func withoutResult(status: Int) async throws {
        let scripted = try ScriptedProxy(
            [.respond(status, body: status == 204 ? "" : "no JSON")],
            repeatsLastStep: true
        )
        try await scripted.proxy.invoke(.get, path: "a")
        try await scripted.proxy.invoke(.post, path: "a", body: 1)
        #expect(scripted.transport.sent.count == 2)
    }

    @Test("E-T23: empty content is not JSON, but is nil for an Optional", arguments: [200, 204])
    func emptyContent(status: Int) async throws {
        let scripted = try ScriptedProxy([.respond(status)], repeatsLastStep: true)
        await #expect(throws: DecodingError.self) {
            let _: Int = try await scripted.proxy.invoke(.get, path: "a")
        }
        await #expect(throws: DecodingError.self) {
            let _: Anything = try await scripted.proxy.invoke(.get, path: "a")
        }
        let none: Int? = try await scripted.proxy.invoke(.get, path: "a")
        #expect(none == nil)
        let list: [Event]? = try await scripted.proxy.invoke(.post, path: "a", body: 1)
        #expect(list == nil)
        let full = try ScriptedProxy([.respond(200, body: "7"), .respond(200, body: "null"), .respond(200, body: " ")])
        #expect(try await full.proxy.invoke(.get, path: "a") as Int? == 7)
        #expect(try await full.proxy.invoke(.get, path: "a") as Int? == nil)
        await #expect(throws: DecodingError.self) {
            let _: Int? = try await full.proxy.invoke(.get, path: "a")
        }
    }

    @Test(
        "A DecodingError has the call's method, URL without secrets, status, and the beginning of the content",
        arguments: [
            (#"{"name":7,"at":1,"token":"s3cret-value"}"#, #"content is {"at":1,"name":7,"token":"<redacted>"}"#),
            ("", "content is empty"),
            ("<html>gone</html>", "content is <html>gone</html>"),
            (#"{"name":"a","password":"s3cret-value"#, #"content is {"name":"a","…"#),
            (#"{"name":"s3cret-value"#, #"content is {"name":"…"#),
            (#"{"name":""# + String(repeating: "x", count: 300) + #""}"#, "… (311 characters)"),
        ]
    )
    func decodingErrorOfACall(content: String, shown: String) async throws {
        let scripted = try ScriptedProxy([.respond(201, body: content)], base: "https://user:s3cret-value@h/api/")
        let error = await #expect(throws: DecodingError.self) {
            let _: Event = try await scripted.proxy.invoke(
                .post,
                path: "events",
                arguments: ["key": "s3cret-value"],
                content: Data("x".utf8)
            )
        }
        let text = try #require(error.map { "\($0)" })
        #expect(text.contains("the response to POST https://h/api/events?key=REDACTED, status 201"), "\(text)")
        #expect(text.contains(shown), "\(text)")
        #expect(!text.contains("s3cret"), "\(text)")
        let response = try #require(error?.serviceError?.response)
        #expect(response.status == 201)
        #expect(try await response.body.data() == Data(content.utf8))
    }

    @Test("An error thrown by the caller's own handler is not changed")
    func decodingErrorOfAHandler() async throws {
        let scripted = try ScriptedProxy([.respond(200, body: "x")])
        let error = await #expect(throws: DecodingError.self) {
            try await scripted.proxy.invoke(.get, path: "a") { content, _ in
                try JSONDecoder().decode(Int.self, from: content)
            }
        }
        #expect(error?.serviceError == nil)
    }

    @Test("Content of another shape throws its DecodingError, and hooks see a failed call")
    func decodingError() async throws {
        let hook = RecordingRequestHook()
        let scripted = try ScriptedProxy([.respond(200, body: "{}")], requestHooks: [hook])
        await #expect(throws: DecodingError.self) {
            let _: [Int] = try await scripted.proxy.invoke(.get, path: "a")
        }
        #expect(hook.failures == ["decoding-failed"])
        #expect(hook.successes == 0)
    }

    @Test("A response handler gets the content and its media type, without parameters and in lower case")
    func handler() async throws {
        let scripted = try ScriptedProxy([
            .respond(200, ["Content-Type": "Text/CSV; charset=utf-8"], body: "a,b"), .respond(204),
        ])
        for expected in ["a,b as text/csv", " as nothing"] {
            let text = try await scripted.proxy.invoke(.get, path: "a") { content, contentType in
                String(decoding: content, as: UTF8.self) + " as " + (contentType ?? "nothing")
            }
            #expect(text == expected)
        }
    }

    @Test("E-T25: an error of a response handler is thrown unchanged; the handler is not called for a failure")
    func handlerThrows() async throws {
        let scripted = try ScriptedProxy([.respond(200), .respond(200), .respond(404)])
        await #expect(throws: Refusal()) {
            try await scripted.proxy.invoke(.get, path: "a") { _, _ -> Int in throw Refusal() }
        }
        let error = await #expect(throws: ServiceError.self) {
            try await scripted.proxy.invoke(.get, path: "a") { _, _ -> Int in throw ServiceError(.timeout, "mine") }
        }
        #expect(error?.message == "mine")
        let failure = await #expect(throws: WebServiceError.self) {
            try await scripted.proxy.invoke(.get, path: "a") { _, _ -> Int in throw Refusal() }
        }
        #expect(failure?.statusCode == 404)
    }

    @Test("E-T27: dates in JSON are the exact instant in both directions")
    func dates() async throws {
        let scripted = try ScriptedProxy([.respond(200, body: "[1700000000123]")], repeatsLastStep: true)
        let dates: [Date] = try await scripted.proxy.invoke(.get, path: "a")
        #expect(dates == [Date(timeIntervalSince1970: 1_700_000_000.123)])
        #expect((dates[0].timeIntervalSince1970 * 1000).rounded() == 1_700_000_000_123)
        try await scripted.proxy.invoke(.post, path: "a", body: dates)
        #expect(scripted.content == "[1700000000123]")
    }

    @Test(
        "E-T27: whole milliseconds stay whole far from 2001, and instants between two stay between them",
        arguments: [
            (1.234, "[1234]"), (-1.5, "[-1500]"), (1_090_000_000.123, "[1090000000123]"),
            (253_402_300_799.999, "[253402300799999]"), (978_307_200.0005, "[978307200000.5]"),
        ]
    )
    func wholeMilliseconds(seconds: Double, sent: String) async throws {
        let scripted = try ScriptedProxy([.respond()])
        try await scripted.proxy.invoke(.post, path: "a", body: [Date(timeIntervalSince1970: seconds)])
        #expect(scripted.content == sent)
    }

    @Test("E-T27: a date from a server is sent back as the same number (seed 7)")
    func roundTrips() async throws {
        var generator = SeededGenerator(seed: 7)
        let numbers = (0..<500).map { _ in Int64.random(in: -2_000_000_000_000...4_000_000_000_000, using: &generator) }
        let scripted = try ScriptedProxy([.respond(200, body: "\(numbers)")], repeatsLastStep: true)
        let dates: [Date] = try await scripted.proxy.invoke(.get, path: "a")
        try await scripted.proxy.invoke(.post, path: "a", body: dates)
        #expect(scripted.content == "\(numbers)".filter { $0 != " " })
    }

    @Test("A DecodingError shows nothing of content with more secrets than can be searched for")
    func manySecrets() async throws {
        let body = (1_000..<8_000).map { "pin=\($0)" }.joined(separator: " ")
        let scripted = try ScriptedProxy([.respond(200, body: body)])
        let error = await #expect(throws: DecodingError.self) {
            let _: [Int] = try await scripted.proxy.invoke(.get, path: "a")
        }
        let text = try #require(error.map { "\($0)" })
        #expect(text.contains("too many secrets to be shown"), "\(text.prefix(300))")
    }
}
