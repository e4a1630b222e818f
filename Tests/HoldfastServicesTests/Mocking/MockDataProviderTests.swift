// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct User: Decodable, Sendable, Equatable {
    let userName: String
}

private struct UserRequest: JsonRequest {
    typealias Result = User
    var routes: HttpRoute { ["users", "1"] }
}

private struct UserService: HttpService {
    var apiUrl: any UrlConvertible { "api.example.com" }
}

@Suite("MockDataProvider (P24)", .timeLimit(.minutes(20)))
struct MockDataProviderTests {
    private static func configuration() -> PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        return configuration
    }

    private func request(_ text: String, _ method: String = "GET", _ fields: [String: String] = [:]) throws
        -> URLRequest
    {
        var request = URLRequest(url: try #require(URL(string: text)))
        request.httpMethod = method
        request.allHTTPHeaderFields = fields
        return request
    }

    private func text(_ request: URLRequest, from provider: MockDataProvider) async throws -> String {
        let response = try await provider.send(request, body: .none, context: CallContext())
        return String(decoding: try await response.body.collect(), as: UTF8.self)
    }

    @Test("P24: a typed call to a mock is cached and checked as if a server had answered")
    func typedCall() async throws {
        let provider = MockDataProvider([
            try MockData(
                "https://api.example.com/users/1",
                fields: ["Content-Type": "application/json", "Cache-Control": "max-age=60"],
                content: .text(#"{"user_name":"a"}"#)
            )
        ])
        let client = ServiceClient(
            UserService(),
            transport: provider,
            cache: .inMemory(),
            configuration: Self.configuration()
        )
        let first = try await client.response(to: UserRequest())
        #expect(first.value == User(userName: "a"))
        #expect(first.response.source == .network(attempts: 1))
        #expect(try await client.response(to: UserRequest()).response.source == .fresh)
    }

    @Test("P24: a mocked failure is retried, and finally refused by the typed call")
    func retried() async throws {
        let client = ServiceClient(
            UserService(),
            transport: MockDataProvider([try MockData("https://api.example.com/users/1", status: 503)]),
            retrierFactory: .default,
            configuration: Self.configuration()
        )
        await #expect {
            try await UserRequest().schedule(with: client)
        } throws: { error in
            let error = error as? ServiceError
            return error?.code == .unacceptableStatus && error?.response?.status.rawValue == 503
                && (error?.response?.attempts.count ?? 0) > 1
        }
    }

    @Test("P24: below a bare pipeline, a mocked response with a validator is cached and revalidated")
    func barePipeline() async throws {
        let url = "http://pmapi/foo"
        let provider = MockDataProvider([
            try MockData(url, fields: ["ETag": "\"1\"", "Cache-Control": "no-cache"], content: .text("foo")),
            try MockData(url, requestFields: ["If-None-Match": "\"1\""], status: 304, fields: ["ETag": "\"1\""]),
        ])
        let pipeline = Pipeline(transport: provider, cache: .inMemory(), configuration: Self.configuration())
        let first = try await pipeline.send(try request(url))
        #expect(try await first.body.data() == Data("foo".utf8))
        let second = try await pipeline.send(try request(url))
        #expect(second.source == .revalidated)
        #expect(try await second.body.data() == Data("foo".utf8))
    }

    @Test(
        "The most specific mock answers: query before fields before method; of equal ones the first",
        arguments: [
            ("https://A.example/x", "GET", [:], "get"), ("https://a.example:443/x#f", "POST", [:], "any"),
            ("https://a.example/x?b=2&a=1", "GET", [:], "query"), ("https://a.example/x?a=1&b=3", "GET", [:], "get"),
            ("https://a.example/x", "GET", ["accept": "text/xml"], "field"),
            ("https://a.example/x", "GET", ["Accept": "text/xml", "X": "1"], "two fields"),
            ("https://a.example/x?a=1&b=2", "GET", ["Accept": "text/xml", "X": "1"], "query"),
            ("https://a.example/x", "GET", ["Accept": "text/html"], "get"),
            ("https://user:pw@a.example/%78", "GET", [:], "get"),
        ] as [(String, String, [String: String], String)]
    )
    func specific(_ url: String, method: String, fields: [String: String], answer: String) async throws {
        let base = "https://a.example/x"
        let provider = MockDataProvider([
            try MockData(base, content: .text("any")),
            try MockData(base, content: .text("any, later")),
            try MockData(base, method: .get, content: .text("get")),
            try MockData(base, requestFields: ["Accept": "text/xml"], content: .text("field")),
            try MockData(base, requestFields: ["Accept": "text/xml", "X": "1"], content: .text("two fields")),
            try MockData(base + "?a=1&b=2", content: .text("query")),
        ])
        #expect(try await text(try request(url, method, fields), from: provider) == answer)
    }

    @Test(
        "A request that no mock matches fails with an error that names it without its secrets, and is not retried",
        arguments: [
            ("https://api.example.com/b", "DELETE https://api.example.com/b."),
            ("https://me:secret@api.example.com/a/c?token=secret&x#secret", "https://api.example.com/a/c?token=…&x=…."),
            ("http://api.example.com/a", "http://api.example.com/a."), ("https://api.example.com:1/a", ":1/a."),
        ]
    )
    func unmatched(_ url: String, named: String) async throws {
        let provider = MockDataProvider([try MockData("https://api.example.com/a")])
        let pipeline = Pipeline(transport: provider, retrierFactory: .default, configuration: Self.configuration())
        await #expect {
            try await pipeline.send(try request(url, "DELETE"))
        } throws: { error in
            guard let error = error as? ServiceError else { return false }
            return error.code == .resourceUnavailable && error.message.contains(named) && error.progress == .notSent
                && !error.description.contains("secret") && error.attempts.count == 1
        }
    }

    @Test(
        "P24: a request that no mock matches goes to the next transport only if that is turned on",
        arguments: [true, false]
    )
    func passing(_ passes: Bool) async throws {
        let next = ScriptedTransport([.respond(200, body: "real")], implicit: { _ in ["Cookie": "a=1"] })
        let mock = try MockData("https://a.example/mocked", content: .text("mock"))
        let provider = MockDataProvider([mock], passesUnmatched: passes, next: next)
        #expect(try await text(try request("https://a.example/mocked"), from: provider) == "mock")
        #expect(next.sent.isEmpty)
        let other = try request("https://a.example/other")
        #expect(provider.implicitFields(for: try request("https://a.example/mocked")).isEmpty)
        #expect(provider.implicitFields(for: other).isEmpty == !passes)
        if passes {
            #expect(try await text(other, from: provider) == "real")
        } else {
            await #expect(throws: ServiceError.self) { try await text(other, from: provider) }
            #expect(next.sent.isEmpty)
        }
        await #expect(throws: ServiceError.self) {
            try await text(other, from: MockDataProvider([mock], passesUnmatched: true))
        }
    }

    @Test("A file is read for each request; a missing one is an error that names it; HEAD gets no content")
    func bodyFile() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "mock-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "users.json")
        let provider = MockDataProvider([try MockData("https://a.example/users", content: .file(file))])
        await #expect {
            try await text(try request("https://a.example/users"), from: provider)
        } throws: { error in
            (error as? ServiceError)?.message.contains("users.json") == true
        }
        #expect(try await text(try request("https://a.example/users", "HEAD"), from: provider) == "")
        for content in ["[]", "[1]"] {
            try Data(content.utf8).write(to: file)
            #expect(try await text(try request("https://a.example/users"), from: provider) == content)
        }
    }

    @Test(
        "A mock needs an absolute URL and a final status",
        arguments: [("/users", 200), ("ftp://a", 200), ("http://a", 103)]
    )
    func badMock(_ url: String, status: Int) {
        #expect {
            try MockData(url, status: status)
        } throws: { error in
            (error as? ServiceError)?.code == .badRequest
        }
    }
}
