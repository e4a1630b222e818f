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

/// The code of docs/services/endpoints.md, block by block.
@Suite("The page on endpoints", .timeLimit(.minutes(20)))
struct EndpointsPageTests {
    private enum Settings {
        static let apiURL = URL(string: "https://example.com/api/v1") ?? URL(filePath: "/")
    }

    actor Session {
        private var token: String?

        var authorization: Authorization { token.map { .bearer($0) } ?? .none }

        func logIn(_ token: String) { self.token = token }
    }

    struct MyService: WebService {
        static let shared = ServiceClient(MyService(), cache: .default, retrierFactory: .default)

        var baseURL = Settings.apiURL  // https://example.com/api/v1
        let session = Session()
        var authorization: Authorization { get async throws { await session.authorization } }

        // Each response says whether it worked, …
        struct BasicResponse: Decodable {
            let success: Bool
        }

        func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws {
            guard basicResponse.success else { throw EndpointError("The server says that it did not work.") }
        }

        // … and the one to a failed call says why not.
        struct ErrorResponse: AnyErrorResponse {
            let message: String
        }

        func configure(_ decoder: inout JSONDecoder, for endpoint: some Endpoint) {
            decoder.dateDecodingStrategy = .iso8601
        }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = MyService
        static let authorizationRequirement = AuthorizationRequirement.none
        let path = "status"
    }

    struct Rename: InEndpoint {
        typealias Service = MyService
        static let method = Method.put
        typealias Input = [String: String]
        let objectId: Int
        var path: String { "object/\(objectId)/name" }
    }

    struct GetObject: OutEndpoint {
        typealias Service = MyService
        static let authorizationRequirement = AuthorizationRequirement.required
        struct Output: Decodable {
            let name: String
            let created: Date
        }
        let objectId: Int
        var path: String { "object/\(objectId)" }
    }

    struct Login: InOutEndpoint {
        typealias Service = MyService
        static let method = Method.post
        static let operationName = "Logging in"
        struct Input: Encodable {
            let username: String
            let password: String
        }
        struct Output: Decodable {
            let token: String
        }
        let path = "login"
    }

    struct GetReport: OutEndpoint {
        typealias Service = MyService
        typealias Output = Data
        let path = "report"
        var options: CallOptions {
            var options = CallOptions()
            options.cache.noStore = true
            return options
        }
        var timeout: Duration? { .seconds(300) }

        func configure(_ request: inout URLRequest) {
            request.setValue("application/pdf", forHTTPHeaderField: "Accept")
        }

        func handle(_ error: EndpointError, response: Response) -> ErrorHandling {
            guard error.code == .gone, let url = response.fields["Location"].flatMap({ URL(string: $0) }) else {
                return .error(error)
            }
            return .redirect(to: url)
        }
    }

    private func startServer() throws -> LoopbackServer {
        let asked = Mutex<Set<String>>([])
        return try LoopbackServer.start { request in
            let isFirst = asked.withLock { $0.insert(request.path).inserted }
            if isFirst, request.method == "GET" { return LoopbackReply(503, fields: [("Retry-After", "0")]) }
            switch request.path {
            case "/status", "/object/7/name": return LoopbackReply(body: #"{"success":true}"#)
            case "/login" where request.text.contains(#""password":"p""#):
                return LoopbackReply(body: #"{"success":true,"token":"t"}"#)
            case "/login": return LoopbackReply(401, body: #"{"message":"Wrong name or password."}"#)
            case "/object/7":
                return LoopbackReply(
                    fields: [("Cache-Control", "max-age=60")],
                    body: #"{"success":true,"name":"hat","created":"2026-01-01T00:00:00Z"}"#
                )
            case "/report":
                let host = request.values(of: "Host").first ?? ""
                return LoopbackReply(410, fields: [("Location", "http://\(host)/reports/new")])
            default: return LoopbackReply(body: "a report")
            }
        }
    }

    private func client(_ server: LoopbackServer) -> ServiceClient<MyService> {
        ServiceClient(MyService(baseURL: server.url("/")), cache: .default, retrierFactory: .default)
    }

    @Test("Calls")
    func calls() async throws {
        let server = try startServer()
        defer { server.stop() }
        let client = client(server)
        let session = client.service.session

        try await MyService.withShared(client) {
            try await CheckStatus().makeRequest()

            let login = try await Login().makeRequest(with: .init(username: "u", password: "p"))
            await session.logIn(login.token)

            try await Rename(objectId: 7).makeRequest(with: ["name": "hat"])

            let object = try await GetObject(objectId: 7).makeRequest(to: client)
            print(object.name, object.created)

            let answer = try await GetObject(objectId: 7).response()
            print(answer.value.name, answer.response.source, answer.response.attempts.count)

            #expect(object.name == "hat")
            #expect(answer.response.source == .fresh)
        }
        #expect(server.requests.map(\.method) == ["GET", "GET", "POST", "PUT", "GET", "GET"])
        #expect(server.requests.last?.values(of: "Authorization") == ["Bearer t"])
    }

    @Test("Errors")
    func errors() async throws {
        let server = try startServer()
        defer { server.stop() }
        var shown: [String] = []
        func show(_ title: String, _ text: String) { shown += [title, text] }
        let client = client(server)

        do {
            _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "q"))
        } catch let error as EndpointError {
            show(error.title, error.alertMessage)
            if error.code == .unauthorized, let said = error.errorResponse(as: MyService.ErrorResponse.self) {
                print(said.message, error.original?.reason ?? "")
            }
        }

        #expect(shown == ["Logging in failed", "Wrong name or password."])
    }

    @Test("Downloads")
    func downloads() async throws {
        let server = try startServer()
        defer { server.stop() }
        let client = client(server)
        let destination = FileManager.default.temporaryDirectory.appending(path: "report-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: destination) }

        let file = try await GetReport().makeDownloadRequest(to: client, onProgress: { print($0) })
        try FileManager.default.moveItem(at: file, to: destination)

        #expect(try String(contentsOf: destination, encoding: .utf8) == "a report")
        #expect(server.requests.allSatisfy { $0.values(of: "Accept") == ["application/pdf"] })
    }

    @Test("Tests of your own")
    func testing() async throws {
        let transport = ScriptedTransport([.respond(body: #"{"success":true}"#)])
        try await MyService.withShared(ServiceClient(MyService(), transport: transport)) {
            try await CheckStatus().makeRequest()
        }
        #expect(transport.sent[0].request.url?.path == "/api/v1/status")
    }
}
