// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Counted: NumberedPage, Decodable {
    var page: Int
    var totalPages: Int
    var isLastPage: Bool { false }
}

private struct CountedPages: JsonRequest {
    typealias Result = Counted
}

private struct Moving: Request {
    typealias Result = String
    let target: String

    func handle(_ error: any Error, response: Response) -> ErrorHandling {
        guard response.status == .conflict, let url = URL(string: target) else { return .error(error) }
        return .redirect(to: url)
    }
}

@Suite("Typed calls and hostile input", .timeLimit(.minutes(20)))
struct HostileInputTests {
    @Test(
        "S31: a page may give any number of pages",
        arguments: [(Int.min, 1), (-1, 1), (0, 1), (1, 1), (2, 2), (Int.max, 3)]
    )
    func pageCounts(_ total: Int, _ read: Int) async throws {
        let body = #"{"page": 1, "total_pages": \#(total)}"#
        let transport = ScriptedTransport([.respond(200, body: body)], repeatsLastStep: true)
        let client = CallFixtures.client(CallFixtures.service(), transport)
        var count = 0
        for try await _ in CountedPages().pages(.numbered(), with: client) {
            count += 1
            if count == 3 { break }
        }
        #expect(count == read)
    }

    @Test(
        "D-T24: a redirect by handle to another origin does not get the pipeline's credential either",
        arguments: [("https://other.example/b", nil), ("https://api.example.com/b", "Bearer secret")]
            as [(String, String?)]
    )
    func redirectedAuthorization(_ target: String, _ credential: String?) async throws {
        let transport = ScriptedTransport([.respond(409), .respond(200, body: "ok")])
        var service = CallFixtures.service()
        service.pipelineConfiguration.authorization = .bearer(token: "secret", for: .matching { $0.scheme == "https" })
        {
            _ in "newer"
        }
        let client = CallFixtures.client(service, transport)
        #expect(try await client.response(to: Moving(target: target)).value == "ok")
        #expect(transport.sent.map { $0.field("Authorization") } == ["Bearer secret", credential])
        #expect(transport.sent.last?.request.url?.absoluteString == target)
    }

    @Test(
        "Fields from the pipeline's steps follow a redirect by handle to another origin only if that origin is trusted",
        arguments: [
            ("https://other.example/b", nil), ("https://api.example.com/b", "k"), ("https://trusted.example/b", "k"),
        ] as [(String, String?)]
    )
    func redirectedAdditions(_ target: String, _ key: String?) async throws {
        let transport = ScriptedTransport([.respond(409), .respond(200, body: "ok")])
        var service = CallFixtures.service()
        service.pipelineConfiguration.trustedOrigins = ["https://trusted.example"]
        service.pipelineConfiguration.prepare = [
            { request, _ in request.setValue("k", forHTTPHeaderField: "X-Api-Key") }
        ]
        let client = CallFixtures.client(service, transport)
        #expect(try await client.response(to: Moving(target: target)).value == "ok")
        #expect(transport.sent.map { $0.field("X-Api-Key") } == ["k", key])
    }

    @Test(
        "A method that is not a token fails before anything is sent",
        arguments: ["GET /evil HTTP/1.1\r\nX-Injected: 1\r\nX-Rest:", "GET ", "", "GE\u{0}T", "GÉT"]
    )
    func method(_ method: String) async throws {
        let transport = ScriptedTransport([.respond(200)], repeatsLastStep: true)
        let client = CallFixtures.client(CallFixtures.service(), transport)
        let error = await #expect(throws: ServiceError.self) {
            try await client.response(to: CallFixtures.text(HttpMethod(rawValue: method)))
        }
        #expect(error?.code == .badRequest)
        #expect(transport.sent.isEmpty)
    }

    @Test("A mock's validate may access the mock")
    func validate() async throws {
        let mock = ServiceMock()
        mock.expect(.get, path: "/text", validate: { _ in #expect(mock.requests.count == 1 && mock.unmet.count == 1) })
        _ = try await mock.client(of: CallFixtures.service()).response(to: CallFixtures.text())
        try mock.verify()
    }

    @Test("A logger shows the content that was sent and does not build it a second time")
    func loggedContent() async throws {
        let count = CountWatch()
        let texts = LoggedTexts()
        let transport = ScriptedTransport([.respond(200, body: "ok")])
        let client = CallFixtures.client(CallFixtures.service(hooks: [texts.logger()]), transport)
        var request = CallFixtures.text(.post)
        request.body = HttpBody {
            count.increment()
            return HttpBody.Encoded(
                contentType: "application/json",
                content: .data(Data(#"{"n":\#(count.count)}"#.utf8))
            )
        }
        _ = try await client.response(to: request)
        #expect(count.count == 1)
        #expect(texts.joined.contains(#"{"n":1}"#))
    }

    @Test(
        "With more secrets than a logger can search for, only method, status and source are shown",
        arguments: [256, 257]
    )
    func manySecrets(_ count: Int) async throws {
        let objects = (0..<count).map { #"{"key":"secret\#($0)","plain":"visible"}"# }
        let content = "[\(objects.joined(separator: ","))]"
        let texts = LoggedTexts()
        let reply = ScriptedTransport.Step.respond(
            200,
            ["Content-Type": "application/json", "Location": "/secret\(count - 1)"],
            body: content
        )
        let service = CallFixtures.service(hooks: [texts.logger(bodies: 100_000)])
        _ = try await CallFixtures.client(service, ScriptedTransport([reply])).response(to: CallFixtures.text())
        #expect(!texts.joined.contains("secret\(count - 1)"))
        #expect(texts.joined.contains("visible") == (count <= 256))
        #expect(texts.joined.contains("Location") == (count <= 256))
        #expect(texts.joined.contains("\(count) secrets, too many to search for") == (count > 256))
        #expect(texts.joined.contains("-> 200, network"))
    }

    @Test("A stream whose token never arrives fails to open in time")
    func streamToken() async throws {
        let gate = CountWatch()
        var service = CallFixtures.service()
        service.makeHeader = {
            try await gate.wait(for: 1)
            return [:]
        }
        service.pipelineConfiguration.clock = ManualClock(autoAdvances: true)
        service.pipelineConfiguration.attemptTimeout = .seconds(5)
        let transport = ScriptedStreamTransport()
        let stream = AnyStreamRequest<StreamMessage, StreamMessage>().schedule(
            with: ServiceClient(service),
            over: transport
        )
        let error = await #expect(throws: ServiceError.self) { try await stream.waitUntilOpen() }
        #expect(error?.code == .timeout)
        #expect(transport.requests.isEmpty)
    }

    @Test("A second reader of a stream does not disturb the first, even when cancelled")
    func cancelledSecondReader() async throws {
        let transport = ScriptedStreamTransport()
        let client = ServiceClient(CallFixtures.service())
        let stream = AnyStreamRequest<StreamMessage, StreamMessage>().schedule(with: client, over: transport)
        try await stream.waitUntilOpen()
        @Sendable func read() async -> String {
            var iterator = stream.makeAsyncIterator()
            do {
                return "\(try await iterator.next()?.get() ?? .text("end"))"
            } catch {
                return CallFixtures.word(error)
            }
        }
        let outcomes = await withTaskGroup(of: String.self) { group in
            for _ in 0..<2 { group.addTask { await read() } }
            // One of the two is refused, so the other one waits.
            let first = await group.next()
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await read()
            }
            let second = await cancelled.value
            transport.connection.push(.text("still here"))
            return [first, second, await group.next()]
        }
        #expect(outcomes == ["unsupported", "unsupported", #"text("still here")"#])
        stream.close()
    }

    @Test("An accent after a separator does not hide it")
    func dividers() throws {
        #expect(try HttpRoute(path: "a/\u{301}b").encodedSegments == ["a", "%CC%81b"])
        #expect(try HttpQuery(encoded: "a=\u{301}b&\u{301}c=d").encoded == "a=%CC%81b&%CC%81c=d")
    }
}
