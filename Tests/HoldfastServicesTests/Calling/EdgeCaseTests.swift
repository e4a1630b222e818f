// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A page that says itself which one is the last, and lies about their number.
private struct OddPage: NumberedPage, Decodable {
    let page: Int
    let totalPages: Int
    var isLastPage: Bool { false }
}

private struct GetOddPage: JsonRequest {
    typealias Result = OddPage
}

private struct GetText: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = String?
    let path = "text"
}

private struct GetBytes: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = Data?
    let path = "bytes"
}

private struct GetFile: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = Data
    let path = "file"
}

/// Sends by a script and notes how many files lie in a directory whenever it is asked to send.
private struct FileCounter: Transport {
    let directory: URL
    let script: ScriptedTransport
    let counts = CountLog()

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        counts.note(try FileManager.default.contentsOfDirectory(atPath: directory.path).count)
        return try await script.send(request, body: body, context: context)
    }
}

private final class CountLog: Sendable {
    private let kept = Mutex<[Int]>([])
    var all: [Int] { kept.withLock { $0 } }
    func note(_ count: Int) { kept.withLock { $0.append(count) } }
}

@Suite("Typed calls: edge cases", .timeLimit(.minutes(20)))
struct EdgeCaseTests {
    @Test("A page count near the maximum of Int does not trap")
    func smallestNumberOfPages() async throws {
        let transport = ScriptedTransport([.respond(body: #"{"page": 1, "total_pages": \#(Int.min)}"#)])
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var count = 0
        for try await _ in GetOddPage().pages(.numbered(), with: client) { count += 1 }
        #expect(count == 1)
    }

    @Test("If the service's own location is unknown, no URL of a page gets its credentials")
    func unknownHome() async throws {
        let transport = ScriptedTransport([.respond(body: "1")])
        var service = AnyHttpService(at: "api.example.com")
        service.header = ["Authorization": "t"]
        let client = ServiceClient(service, transport: transport)
        let foreign = try #require(URL(string: "https://evil.example/x"))
        let nothing: String? = nil
        let pages = AnyRequest(routes: [nothing]).pages(Pagination(first: .url(foreign)) { _, _ in nil }, with: client)
        await #expect(throws: ServiceError.self) { for try await _ in pages {} }
        #expect(transport.sent.isEmpty)
    }

    @Test("Optional text and bytes are the content as it came, like those that are not optional")
    func optionalText() async throws {
        func client(_ body: String) -> ServiceClient<EndpointBed.Service> {
            EndpointBed.client(EndpointBed.Service(), ScriptedTransport([.respond(body: body)]))
        }
        #expect(try await GetText().makeRequest(to: client("hello")) == "hello")
        #expect(try await GetBytes().makeRequest(to: client("hello")) == Data("hello".utf8))
        #expect(try await GetText().makeRequest(to: client("")) == nil)
    }

    @Test("The file of a failed attempt is removed before the next one is sent")
    func brokenAttempt() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let failure = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let transport = FileCounter(
            directory: directory,
            script: ScriptedTransport([
                .stream(chunks: ["broken"], failure: failure), .stream(chunks: ["broken"], failure: failure),
                .stream(chunks: ["whole"]),
            ])
        )
        let factory = AnyRetrierFactory(checksAttempts: true) { _ in
            BackoffRetrier(strategy: .exponentialBinary(), retryCondition: { _ in true })
        }
        // A transport that is raced against the time of an attempt would lose by a clock that jumps.
        let client = EndpointBed.client(EndpointBed.Service(), transport, retrierFactory: factory, attemptTimeout: nil)
        let answer = try await GetFile().downloadResponse(to: client, into: directory)
        #expect(transport.counts.all == [0, 0, 0])
        #expect(try String(contentsOf: answer.value, encoding: .utf8) == "whole")
        // At its end the body lets go of the file, and it stays at its end when the file is gone.
        var body = answer.response.body.makeAsyncIterator()
        while try await body.next() != nil {}
        try FileManager.default.removeItem(at: answer.value)
        #expect(try await body.next() == nil)
    }

    @Test("A logger hides the fragment of a relative URL, and the user of each URL in a field")
    func loggedURLs() async throws {
        let log = Mutex<[String]>([])
        var service = AnyHttpService(at: "api.example.com")
        service.requestHooks = [CallLogger { text in log.withLock { $0.append(text) } }]
        let fields: HeaderFields = [
            "Location": "/back#code=zq1secret&page=shown",
            "Link": "<https://a.example/x>,<https://ann:zq2secret@b.example/y>",
        ]
        let client = ServiceClient(service, transport: ScriptedTransport([.respond(201, fields)]))
        _ = try await client.response(to: AnyRequest(routes: ["x"]))
        let text = log.withLock { $0.joined() }
        #expect(!text.contains("zq"))
        #expect(text.contains("Location: /back#code=<redacted>&page=shown"))
        #expect(text.contains("<https://a.example/x>,<https://<redacted>@b.example/y>"))
    }

    @Test("Concurrent requests meet each expectation once")
    func mockedAtOnce() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: EndpointBed.Service())
        for _ in 0..<32 { mock.expect(.get, path: "status") { _ in } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<32 { group.addTask { try await EndpointBed.CheckStatus().makeRequest(to: client) } }
            try await group.waitForAll()
        }
        #expect(mock.unmet.isEmpty)
        #expect(mock.requests.count == 32)
        try mock.verify()
    }
}
