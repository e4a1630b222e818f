// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private typealias ClosureRetrier = CallFixtures.ClosureRetrier

@Suite("Header fields in retries", .timeLimit(.minutes(20)))
struct RenewedHeaderTests {
    /// The token of a service, and how often it was asked for.
    private final class Tokens: Sendable {
        private let state = Mutex((token: "one", asked: 0))

        var token: String {
            state.withLock { state in
                state.asked += 1
                return state.token
            }
        }

        var asked: Int { state.withLock { $0.asked } }

        func renew() { state.withLock { $0.token = "two" } }
    }

    private let tokens = Tokens()

    private func renewing() -> AnyRetrierFactory {
        let tokens = tokens
        return AnyRetrierFactory { _ in
            ClosureRetrier(allowsMultipleRetries: false) { attempt in
                guard attempt.response?.status == .unauthorized else { return .stop(.retrierDeclined) }
                tokens.renew()
                return .retryNow
            }
        }
    }

    private func service(_ log: CallFixtures.Log = CallFixtures.Log()) -> AnyHttpService {
        let tokens = tokens
        var service = CallFixtures.service(log)
        service.retrierFactory = renewing()
        service.findAuthorization = { .bearer(tokens.token) }
        return service
    }

    @Test("S-T17: the retry has the refreshed token, and onSuccess gets the request that was sent last")
    func refreshed() async throws {
        struct Seed: RequestHook {
            let log: CallFixtures.Log
            func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) {
                log.note(urlRequest.value(forHTTPHeaderField: "Authorization") ?? "")
            }
        }
        let log = CallFixtures.Log()
        var service = service(log)
        service.requestHooks = [Seed(log: log)]
        let transport = ScriptedTransport([.respond(401), .respond(200, body: "ok")])
        let answer = try await CallFixtures.client(service, transport).response(to: CallFixtures.text())
        #expect(transport.sent.map { $0.field("Authorization") } == ["Bearer one", "Bearer two"])
        #expect(log.entries == ["Bearer two"])
        #expect(answer.urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer two")
    }

    @Test("A redirect within the origin has the token of the retry before it")
    func redirected() async throws {
        let transport = ScriptedTransport([
            .respond(401), .respond(307, ["Location": "/elsewhere"]), .respond(503), .respond(200, body: "ok"),
        ])
        var service = service()
        service.retrierFactory = .chain(renewing(), .backoff(base: .zero))
        _ = try await CallFixtures.client(service, transport).response(to: CallFixtures.text())
        let tokens = ["Bearer one", "Bearer two", "Bearer two", "Bearer two"]
        #expect(transport.sent.map { $0.field("Authorization") } == tokens)
    }

    @Test("A redirect to another origin has no token, old or new")
    func redirectedAway() async throws {
        let transport = ScriptedTransport([
            .respond(401), .respond(307, ["Location": "https://elsewhere.example/"]), .respond(503),
            .respond(200, body: "ok"),
        ])
        var service = service()
        service.retrierFactory = .chain(renewing(), .backoff(base: .zero))
        _ = try await CallFixtures.client(service, transport).response(to: CallFixtures.text())
        #expect(transport.sent.map { $0.field("Authorization") } == ["Bearer one", "Bearer two", nil, nil])
    }

    @Test("A call that succeeds at once gets its token once, and its content is built once however often it is sent")
    func once() async throws {
        let encodings = CallFixtures.Log()
        var request = CallFixtures.text(.put)
        request.body = HttpBody {
            encodings.note("encoded")
            let content = "content \(encodings.entries.count)"
            return HttpBody.Encoded(
                contentType: "multipart/x; boundary=\(encodings.entries.count)",
                content: .data(Data(content.utf8))
            )
        }
        let transport = ScriptedTransport([.respond(200), .respond(401), .respond(200)])
        let client = CallFixtures.client(service(), transport)
        _ = try await request.schedule(with: client)
        #expect(tokens.asked == 1)
        _ = try await request.schedule(with: client)
        #expect(tokens.asked == 3)
        #expect(encodings.entries.count == 2)
        #expect(transport.sent.map(\.body) == [1, 2, 2].map { ByteChunk(copying: "content \($0)".utf8) })
        #expect(transport.sent.map { $0.field("Content-Type") } == [1, 2, 2].map { "multipart/x; boundary=\($0)" })
    }

    @Test("What prepare signs is signed again for the retry, and a field that is gone is removed")
    func prepared() async throws {
        var request = CallFixtures.text()
        request.preparing = { [tokens] built in
            var built = built
            let isFirst = tokens.asked == 1
            built.setValue(
                "signature \(built.value(forHTTPHeaderField: "Authorization") ?? "")",
                forHTTPHeaderField: "Signature"
            )
            built.setValue(isFirst ? "1" : nil, forHTTPHeaderField: "First")
            return built
        }
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        _ = try await request.schedule(with: CallFixtures.client(service(), transport))
        #expect(transport.sent.map { $0.field("Signature") } == ["signature Bearer one", "signature Bearer two"])
        #expect(transport.sent.map { $0.field("First") } == ["1", nil])
    }

    @Test("What prepare steps sign is the token that the retry is sent with")
    func signedBySteps() async throws {
        func sign(_ field: String) -> PrepareStep {
            { request, _ in
                request.setValue(request.value(forHTTPHeaderField: "Authorization"), forHTTPHeaderField: field)
            }
        }
        var service = service()
        service.pipelineConfiguration.prepare = [sign("X-Pipeline")]
        var request = CallFixtures.text()
        request.options.prepare = [sign("X-Own")]
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        _ = try await request.schedule(with: CallFixtures.client(service, transport))
        #expect(transport.sent.map { $0.field("X-Pipeline") } == ["Bearer one", "Bearer two"])
        #expect(transport.sent.map { $0.field("X-Own") } == ["Bearer one", "Bearer two"])
    }

    @Test("A credential that a hook removed or replaced stays so in the retry", arguments: [nil, "own"] as [String?])
    func editedByHook(_ credential: String?) async throws {
        struct Editing: ServiceHook {
            let credential: String?
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                request.setValue(credential, forHTTPHeaderField: "Authorization")
                return nil
            }
        }
        var service = service()
        service.hooks = [Editing(credential: credential)]
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        _ = try await CallFixtures.text().schedule(with: CallFixtures.client(service, transport))
        #expect(transport.sent.map { $0.field("Authorization") } == [credential, credential])
    }

    @Test("A redirect by handle within the origin has the token of the retry before it")
    func handled() async throws {
        struct Following: Request {
            typealias Result = String
            let target: URL
            var routes: HttpRoute { ["text"] }
            func handle(_ error: any Error, response: Response) -> ErrorHandling { .redirect(to: target) }
        }
        let target = try #require(URL(string: "https://api.example.com/b"))
        let transport = ScriptedTransport([.respond(401), .respond(409), .respond(200)])
        _ = try await Following(target: target).schedule(with: CallFixtures.client(service(), transport))
        #expect(transport.sent.map { $0.field("Authorization") } == ["Bearer one", "Bearer two", "Bearer two"])
    }

    private enum QueryDoor: CaseIterable {
        case query, prepare, user
    }

    @Test("A token in the query, or a user in the URL, is renewed for the retry", arguments: QueryDoor.allCases)
    private func inQuery(_ door: QueryDoor) async throws {
        var service = CallFixtures.service()
        service.retrierFactory = renewing()
        let token = tokens
        let request = TokenRequest { built in
            let isUser = door == .user
            guard door != .query, let url = built.url,
                var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
            else { return built }
            var built = built
            if isUser { parts.user = token.token } else { parts.query = "a=1&token=\(token.token)" }
            built.url = parts.url
            return built
        } arguments: {
            door == .query ? ["a": 1, "token": token.token] : HttpQuery()
        }
        // A step of the pipeline's own puts more behind it.
        service.pipelineConfiguration.prepare = [
            { request, _ in
                guard let url = request.url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
                    return
                }
                parts.percentEncodedQuery = [parts.percentEncodedQuery, "z=1"].compactMap(\.self).joined(separator: "&")
                request.url = parts.url
            }
        ]
        let transport = ScriptedTransport([.respond(401), .respond(200, body: "ok")])
        let answer = try await CallFixtures.client(service, transport).response(to: request)
        let sent = transport.sent.map { $0.request.url?.absoluteString ?? "" }
        let expected =
            door == .user
            ? ["https://one@api.example.com/text?z=1", "https://two@api.example.com/text?z=1"]
            : ["https://api.example.com/text?a=1&token=one&z=1", "https://api.example.com/text?a=1&token=two&z=1"]
        #expect(sent == expected)
        #expect(answer.urlRequest.url?.absoluteString == expected[1])
    }

    @Test("The response to a retry with another query is stored under neither, and a redirect's query is the server's")
    func otherQuery() async throws {
        var service = CallFixtures.service()
        service.retrierFactory = renewing()
        service.cache = .default
        let token = tokens
        let request = TokenRequest {
            $0
        } arguments: {
            ["token": token.token]
        }
        let fresh: HeaderFields = ["Cache-Control": "max-age=60"]
        let transport = ScriptedTransport([
            .respond(401), .respond(200, fresh, body: "two's"), .respond(200, fresh, body: "again"),
            .respond(307, ["Location": "/elsewhere?by=server"]), .respond(401), .respond(200, body: "x"),
        ])
        let client = CallFixtures.client(service, transport)
        #expect(try await request.schedule(with: client) == "two's")
        #expect(try await request.schedule(with: client) == "again")
        #expect(try await request.schedule(with: client) == "again")
        #expect(transport.sent.count == 3)
        let other = TokenRequest {
            $0
        } arguments: {
            ["token": token.token, "other": 1]
        }
        _ = try await other.schedule(with: client)
        let sent = transport.sent.suffix(2).compactMap { $0.request.url?.absoluteString }
        #expect(sent == Array(repeating: "https://api.example.com/elsewhere?by=server", count: 2))
    }

    /// A request whose head is made anew whenever it is asked for.
    private struct TokenRequest: Request {
        typealias Result = String
        let preparing: @Sendable (URLRequest) -> URLRequest
        let arguments: @Sendable () -> HttpQuery
        var routes: HttpRoute { ["text"] }
        var query: HttpQuery { arguments() }
        func prepare(_ request: URLRequest) -> URLRequest { preparing(request) }
    }

    @Test("A field that a hook of the pipeline added stays in the retry")
    func hookFields() async throws {
        struct Tracing: ServiceHook {
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                request.setValue("trace", forHTTPHeaderField: "Traceparent")
                return nil
            }
        }
        var service = service()
        service.hooks = [Tracing()]
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        _ = try await CallFixtures.text().schedule(with: CallFixtures.client(service, transport))
        #expect(transport.sent.map { $0.field("Traceparent") } == ["trace", "trace"])
        #expect(transport.sent.last?.field("Authorization") == "Bearer two")
    }

    @Test(
        "A retry after a redirect updates the fields that were kept, and adds none that were dropped",
        arguments: [("https://api.example.com/b", "Bearer two"), ("https://other.example/b", nil)]
            as [(String, String?)]
    )
    func redirected(_ location: String, _ expected: String?) async throws {
        let transport = ScriptedTransport([.respond(307, ["Location": location]), .respond(401), .respond(200)])
        _ = try await CallFixtures.text().schedule(with: CallFixtures.client(service(), transport))
        #expect(transport.sent.map { $0.request.url?.path } == ["/text", "/b", "/b"])
        #expect(transport.sent.last?.field("Authorization") == expected)
    }

    @Test("If the token for the retry cannot be obtained, the call ends with that error, reported once")
    func noToken() async throws {
        struct LoggedOut: Error {}
        let log = CallFixtures.Log()
        var service = service(log)
        let tokens = tokens
        service.findAuthorization = {
            let token = tokens.token
            if token == "two" { throw LoggedOut() }
            return .bearer(token)
        }
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        let client = CallFixtures.client(service, transport)
        await #expect(throws: LoggedOut.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(transport.sent.count == 1)
        #expect(log.entries == ["process(LoggedOut())"])
    }

    @Test("A token in the query is renewed for the retry although a cache spells the URL as its key")
    func queryAsKeyed() async throws {
        var service = CallFixtures.service()
        service.apiUrl = "api.example.com?by=a%2fb"
        service.retrierFactory = renewing()
        service.cache = HTTPCache.inMemory()
        let token = tokens
        let request = TokenRequest {
            $0
        } arguments: {
            ["token": token.token]
        }
        let transport = ScriptedTransport([.respond(401), .respond(200, body: "ok")])
        _ = try? await request.schedule(with: CallFixtures.client(service, transport))
        let queries = transport.sent.compactMap { $0.request.url?.query(percentEncoded: true) }
        #expect(queries == ["by=a%2Fb&token=one", "by=a%2Fb&token=two"])
    }
}
