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

private struct Api: WebService {
    struct ErrorResponse: AnyErrorResponse { let message: String }

    static let shared = ServiceClient(Api(baseURL: URL(filePath: "/")))
    let baseURL: URL
    let credential = HeldAuthorization(.none)
    var authorization: Authorization { get async throws { credential.value } }
}

private struct CheckStatus: EmptyEndpoint {
    typealias Service = Api
    static let authorizationRequirement = AuthorizationRequirement.none
    let path = "status"
}

private struct Login: InOutEndpoint {
    typealias Service = Api
    static let method = Method.post
    static let authorizationRequirement = AuthorizationRequirement.none
    struct Input: Codable {
        let username: String
        let password: String
    }
    struct Output: Codable { let token: String }
    let path = "login"
}

private struct GetObject: OutEndpoint {
    typealias Service = Api
    static let authorizationRequirement = AuthorizationRequirement.required
    struct Output: Codable, Hashable {
        let id: Int
        let name: String
    }
    let objectId: Int
    var path: String { "object/\(objectId)" }
}

private struct GetFile: OutEndpoint {
    typealias Service = Api
    typealias Output = Data
    let path = "file"
}

/// The endpoints of the seed page over real sockets, through cache and retry.
@Suite("Endpoints against a real server", .timeLimit(.minutes(20)))
struct EndpointLoopbackTests {
    private static let fileLength = 1 << 20

    /// Answers each path with 503 once, and then as it should.
    private func startServer() throws -> LoopbackServer {
        let asked = Mutex<Set<String>>([])
        return try LoopbackServer.start { request in
            let isFirst = asked.withLock { $0.insert(request.path).inserted }
            if isFirst, request.method == "GET" { return LoopbackReply(503, fields: [("Retry-After", "0")]) }
            let isLoggedIn = request.values(of: "Authorization") == ["Bearer t-u"]
            switch request.path {
            case "/api/v1/status": return LoopbackReply(204)
            case "/api/v1/login":
                guard let input = try? JSONDecoder().decode(Login.Input.self, from: Data(request.body)),
                    input.password == "p"
                else { return LoopbackReply(403, body: #"{"message":"Wrong name or password."}"#) }
                return LoopbackReply(body: #"{"token":"t-\#(input.username)"}"#)
            case "/api/v1/object/7" where isLoggedIn:
                return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: #"{"id":7,"name":"hat"}"#)
            case "/api/v1/file":
                return LoopbackReply(bytes: (0..<Self.fileLength).map { UInt8(truncatingIfNeeded: $0 / 7) })
            default: return LoopbackReply(401)
            }
        }
    }

    private func client(_ server: LoopbackServer) -> ServiceClient<Api> {
        ServiceClient(Api(baseURL: server.url("/api/v1")), cache: .inMemory(), retrierFactory: .default)
    }

    @Test("CheckStatus, Login and GetObject through cache and retry")
    func seedPage() async throws {
        let server = try startServer()
        defer { server.stop() }
        let client = client(server)
        try await CheckStatus().makeRequest(to: client)
        let refused = await endpointError {
            _ = try await Login().makeRequest(to: client, with: .init(username: "u", password: "q"))
        }
        #expect(refused?.code == .forbidden)
        #expect(refused?.reason == "Wrong name or password.")
        let missing = await endpointError { _ = try await GetObject(objectId: 7).makeRequest(to: client) }
        #expect(missing?.code == .unauthorized)
        let token = try await Login().makeRequest(to: client, with: .init(username: "u", password: "p")).token
        client.service.credential.set(.bearer(token))
        let first = try await GetObject(objectId: 7).response(to: client)
        #expect(first.value == GetObject.Output(id: 7, name: "hat"))
        #expect(first.response.source == .network(attempts: 2))
        let second = try await GetObject(objectId: 7).response(to: client)
        #expect(second.value == first.value)
        #expect(second.response.source == .fresh)
        let targets = server.requests.map { "\($0.method) \($0.target)" }
        #expect(
            targets == [
                "GET /api/v1/status", "GET /api/v1/status", "POST /api/v1/login", "POST /api/v1/login",
                "GET /api/v1/object/7", "GET /api/v1/object/7",
            ]
        )
        #expect(server.requests.allSatisfy { $0.values(of: "Accept") == ["application/json"] })
        #expect(server.requests[2].values(of: "Content-Type") == ["application/json"])
    }

    @Test("A download of a megabyte, with progress")
    func download() async throws {
        let server = try startServer()
        defer { server.stop() }
        let fractions = Mutex<[Double]>([])
        let report: EndpointProgress = { fraction in fractions.withLock { $0.append(fraction) } }
        let url = try await GetFile().makeDownloadRequest(to: client(server), onProgress: report)
        defer { try? FileManager.default.removeItem(at: url) }
        let content = try Data(contentsOf: url)
        #expect(content.count == Self.fileLength)
        #expect(content[700] == 100)
        let reported = fractions.withLock { $0 }
        #expect(reported.first == 0)
        #expect(reported.last == 1)
        #expect(reported == reported.sorted())
        #expect(Set(reported).count == reported.count)
    }
}
