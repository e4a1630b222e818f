// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/services/mocking-and-logging.md, so that what stands there compiles and does what it says.
@Suite("The page on mocks and logging", .timeLimit(.minutes(20)))
struct MockingAndLoggingPageTests {
    private struct User: Decodable, Sendable {
        let userName: String
    }

    private struct UserRequest: JsonRequest {
        typealias Result = User
        let number: Int
        var routes: HttpRoute { ["users", number] }
    }

    private struct UserService: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com" }
    }

    @Test("Mocks as values, and other requests forwarded")
    func values() async throws {
        let mocks = MockDataProvider([
            try MockData(
                "https://api.example.com/users/7",
                fields: ["Content-Type": "application/json", "Cache-Control": "max-age=60"],
                content: .text(#"{"user_name":"seven"}"#)
            ),
            try MockData("https://api.example.com/users/8", status: 503),
        ])
        let client = ServiceClient(UserService(), transport: mocks, cache: .default)
        let user = try await UserRequest(number: 7).schedule(with: client)
        #expect(user.userName == "seven")
        await #expect(throws: ServiceError.self) { try await UserRequest(number: 8).schedule(with: client) }

        let network = ScriptedTransport([.respond(200, body: #"{"user_name":"nine"}"#)])
        let mixed = MockDataProvider(mocks.mocks, passesUnmatched: true, next: network)
        let passing = ServiceClient(UserService(), transport: mixed)
        #expect(try await UserRequest(number: 9).schedule(with: passing).userName == "nine")
    }

    @Test("The page's file of mocks")
    func file() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "mocks-\(UUID().uuidString).json")
        let json = #"""
            {
              "mocks": [
                {
                  "url": "https://api.example.com/users/7",
                  "method": "GET",
                  "requestFields": {"Accept": "application/json"},
                  "status": 200,
                  "fields": {"Cache-Control": "max-age=60"},
                  "json": {"user_name": "seven"}
                },
                {"url": "https://api.example.com/logo", "fields": {"Content-Type": "image/png"}, "bodyFile": "logo.png"}
              ]
            }
            """#
        try Data(json.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let mocks = try MockDataProvider(contentsOf: file)
        #expect(mocks.mocks.count == 2)
        var request = URLRequest(url: try #require(URL(string: "https://api.example.com/users/7")))
        #expect(mocks.mock(for: request) == nil)
        request.setValue("application/json", forHTTPHeaderField: "accept")
        let mock = try #require(mocks.mock(for: request))
        #expect(mock.fields["Content-Type"] == "application/json")
    }

    // MARK: Expectations

    private enum Settings {
        static let shopURL = URL(string: "https://example.com/v1") ?? URL(filePath: "/")
    }

    struct Shop: WebService {
        static let shared = ServiceClient(Shop())
        let baseURL = Settings.shopURL  // https://example.com/v1
        var retrierFactory: any RetrierFactory { .default }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = Shop
        let path = "status"
    }

    struct Login: InOutEndpoint {
        typealias Service = Shop
        static let method = Method.post
        struct Input: Encodable, Sendable {
            let username: String
            let password: String
        }
        struct Output: Codable, Sendable {
            let token: String
        }
        let path = "login"
    }

    private static var configuration: PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        return configuration
    }

    private func refusal(_ call: () async throws -> Void) async -> String? {
        do {
            try await call()
            return nil
        } catch {
            return MockFailure(in: error)?.message
        }
    }

    @Test("Expectations are met in order, a retry by its own, and verified")
    func expectations() async throws {
        let configuration = Self.configuration
        let mock = ServiceMock()
        try mock.expect(Login.self, input: .init(username: "u", password: "p"), returning: .init(token: "t"))
        mock.expect(CheckStatus.self, respond: .failure(ServiceError(.connectionLost, "Broken.", progress: .bodySent)))
        mock.expect(CheckStatus.self, respond: .status(204))

        try await Shop.withShared(mock.client(of: Shop(), configuration: configuration)) {
            let login = try await Login().makeRequest(with: .init(username: "u", password: "p"))
            #expect(login.token == "t")
            try await CheckStatus().makeRequest()  // sent twice: the first one broke
        }
        try mock.verify()
        #expect(mock.requests.map(\.path) == ["/v1/login", "/v1/status", "/v1/status"])
    }

    @Test("Requests of other APIs are expected by method and path, and checked by a closure")
    func otherFaces() async throws {
        let mock = ServiceMock()
        mock.expect(
            .get,
            path: "/v1/items/7",
            validate: { try #require($0.query["lang"] == "en") },
            respond: .content("{}")
        )
        let proxy = WebServiceProxy(transport: mock, baseURL: Settings.shopURL)
        let item: [String: Int] = try await proxy.invoke(.get, path: "items/7", arguments: ["lang": "en"])
        #expect(item.isEmpty)
        try mock.verify()
    }

    @Test("Each mismatch says what was expected and what came, as in the page's table")
    func mismatches() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Shop(), configuration: Self.configuration)
        let proxy = WebServiceProxy(transport: mock, baseURL: Settings.shopURL)
        let status = await refusal { try await CheckStatus().makeRequest(to: client) }
        #expect(status == "Nothing was expected, but GET /v1/status was received.")

        try mock.expect(Login.self, input: .init(username: "u", password: "p"), returning: .init(token: "t"))
        let type = await refusal { try await CheckStatus().makeRequest(to: client) }
        #expect(type == "Expected Login, but received CheckStatus, as GET /v1/status.")
        let input = await refusal {
            _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "q"))
        }
        #expect(input == "Login was received with other input than expected.")
        _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "p"))

        mock.expect(.get, path: "/v1/items/7")
        let method = await refusal { try await proxy.invoke(.post, path: "items/7") }
        #expect(method == "Expected GET /v1/items/7, but received POST /v1/items/7.")
        try await proxy.invoke(.get, path: "items/7")

        mock.expect(CheckStatus.self, path: "health")
        let path = await refusal { try await CheckStatus().makeRequest(to: client) }
        #expect(path == "Expected CheckStatus at health, but received it at status.")
        #expect(mock.failures.map(\.code) == [.noExpectation, .wrongType, .wrongInput, .wrongMethod, .wrongPath])

        let idle = ServiceMock()
        idle.expect(CheckStatus.self)
        let failure = #expect(throws: MockFailure.self) { try idle.verify() }
        #expect(failure?.message == "Expected but not received: CheckStatus.")
    }

    @Test("Calls of other tasks are awaited, and unexpected ones are handled")
    func others() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Shop())
        mock.expect(CheckStatus.self)
        let heartbeat = Task { try await CheckStatus().makeRequest(to: client) }
        try await mock.waitForAll(timeout: .seconds(5))
        try await heartbeat.value

        mock.handleAll { request in
            request.path.hasSuffix("/status") ? .status(204) : .status(404)
        }
        try await CheckStatus().makeRequest(to: client)
        let error = await #expect(throws: EndpointError.self) {
            _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "p"))
        }
        #expect(error?.status == 404)
    }

    @Test("A script of failures, waits and responses, and a closure in place of one")
    func scripts() async throws {
        let configuration = Self.configuration
        let transport = ScriptedTransport([
            .fail(.connectionLost, progress: .notSent),
            .respond(503, ["Retry-After": "30"]).delayed(by: .seconds(2)),
            .respond(200, ["Content-Type": "application/json"], body: #"{"user_name":"seven"}"#),
        ])
        let client = ServiceClient(
            UserService(),
            transport: transport,
            retrierFactory: .default,
            configuration: configuration
        )
        let user = try await UserRequest(number: 7).schedule(with: client)
        #expect(transport.sent.map(\.attempt) == [1, 2, 3])
        #expect(user.userName == "seven")

        let mirror = ScriptedTransport { request in
            .respond(200, ["Content-Type": "text/plain"], body: request.url?.path() ?? "")
        }
        let text = try await AnyRequest(routes: ["a"]).schedule(
            with: ServiceClient(UserService(), transport: mirror)
        )
        #expect(String(decoding: text, as: UTF8.self) == "/a")
    }

    // MARK: Logging

    private static func answer() -> ScriptedTransport {
        ScriptedTransport(
            [.respond(200, ["Content-Type": "application/json"], body: #"{"token":"t0ken"}"#)],
            repeatsLastStep: true
        )
    }

    @Test("A logger's messages, without credentials")
    func logging() async throws {
        let messages = Mutex<[String]>([])
        let log = { @Sendable (message: String) in messages.withLock { $0.append(message) } }
        let transport = Self.answer()
        var logger = CallLogger { message in log(message) }
        logger.bodyLimit = 1_000
        let client = ServiceClient(Shop(), transport: transport, requestHooks: [logger])
        _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "pa55word"))
        let written = """
            Shop.Login POST https://example.com/v1/login
              Accept: application/json
              Content-Type: application/json
              {"password":"<redacted>","username":"u"}
            Shop.Login POST https://example.com/v1/login -> 200, network
              Content-Type: application/json
              {"token":"<redacted>"}
            """
        #expect(messages.withLock { $0.joined(separator: "\n") } == written)
    }

    @Test("A logger of bare requests, and more names and texts to hide")
    func redaction() async throws {
        let messages = Mutex<[String]>([])
        let transport = Self.answer()
        var logger = CallLogger { message in messages.withLock { $0.append(message) } }
        logger.redaction.words.insert("ssn")
        logger.redaction.fields = ["X-Device"]
        logger.redaction.shownFields.insert("X-Tenant")
        logger.redaction.shownArguments.insert("category")
        logger.redaction.finally = { $0.replacing(/\/invitations\/[^\/? ]+/, with: "/invitations/…") }
        let pipeline = Pipeline(transport: transport, hooks: [logger])
        let url = try #require(URL(string: "https://example.com/invitations/s3cret?ssn=123456"))
        var request = URLRequest(url: url)
        request.setValue("d3vice", forHTTPHeaderField: "X-Device")
        _ = try await pipeline.send(request)
        let text = messages.withLock { $0.joined(separator: "\n") }
        #expect(text.contains("GET https://example.com/invitations/…?ssn=<redacted>"))
        #expect(text.contains("X-Device: <redacted>"))
        for secret in ["s3cret", "123456", "d3vice"] { #expect(!text.contains(secret)) }
    }
}
