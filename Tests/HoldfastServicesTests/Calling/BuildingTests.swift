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

@Suite("Building typed requests", .timeLimit(.minutes(20)))
struct BuildingTests {
    private func sent(
        _ service: AnyHttpService = CallFixtures.service(),
        _ request: AnyRequest<String> = CallFixtures.text()
    ) async throws -> ScriptedTransport.Sent {
        let transport = ScriptedTransport([.respond(200, body: "ok")])
        _ = try await request.schedule(with: CallFixtures.client(service, transport))
        return try #require(transport.sent.first)
    }

    @Test("S-T1: the request's field wins over the service's")
    func requestFieldWins() async throws {
        var service = CallFixtures.service()
        service.header = ["X": "s", "Y": "s"]
        var request = CallFixtures.text()
        request.header = ["X": "r"]
        let sent = try await sent(service, request)
        #expect(sent.field("X") == "r")
        #expect(sent.field("Y") == "s")
    }

    @Test("S-T2: one field, letter case aside, and the request's value wins")
    func letterCase() async throws {
        var service = CallFixtures.service()
        service.header = ["authorization": "s"]
        var request = CallFixtures.text()
        request.header = ["Authorization": "r"]
        let sent = try await sent(service, request)
        #expect(sent.field("Authorization") == "r")
        let names = (sent.request.allHTTPHeaderFields ?? [:]).keys.filter { $0.lowercased() == "authorization" }
        #expect(names.count == 1)
    }

    @Test("A name that occurs twice in one header, in two letter cases, is sent as one field with both values in order")
    func doubled() async throws {
        var request = CallFixtures.text()
        request.header = ["X-Tag": "a", "x-tag": "b"]
        let sent = try await sent(CallFixtures.service(), request)
        #expect(sent.field("X-Tag") == "a, b")
        #expect((sent.request.allHTTPHeaderFields ?? [:]).keys.filter { $0.lowercased() == "x-tag" }.count == 1)
    }

    @Test("S-T3: header, asyncHeader, request: each wins over the ones before", arguments: [true, false])
    func asyncHeader(_ requestHasIt: Bool) async throws {
        var service = CallFixtures.service()
        service.header = ["A": "1"]
        service.makeHeader = { ["a": "2"] }
        var request = CallFixtures.text()
        if requestHasIt { request.header = ["A": "3"] }
        #expect(try await sent(service, request).field("A") == (requestHasIt ? "3" : "2"))
    }

    @Test("S-T4: an explicit Content-Type wins over the body's", arguments: ["x/y", nil] as [String?])
    func contentType(_ explicit: String?) async throws {
        var request = CallFixtures.text(.post)
        request.body = .data(Data("{}".utf8), contentType: "application/json")
        if let explicit { request.header = ["content-type": explicit] }
        #expect(try await sent(CallFixtures.service(), request).field("Content-Type") == explicit ?? "application/json")
    }

    @Test("S-T5: hooks and transport see the request that prepare made")
    func prepare() async throws {
        let seen = Mutex<URLRequest?>(nil)
        struct Looking: RequestHook {
            let look: @Sendable (URLRequest) -> Void
            func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) -> R.Result? {
                look(urlRequest)
                return nil
            }
        }
        var request = CallFixtures.text()
        request.header = ["X": "r"]
        request.preparing = { built in
            var built = built
            #expect(built.value(forHTTPHeaderField: "X") == "r", "prepare comes last")
            built.url = URL(string: "https://elsewhere.example/new")
            built.setValue("p", forHTTPHeaderField: "X")
            return built
        }
        let service = CallFixtures.service(hooks: [Looking { urlRequest in seen.withLock { $0 = urlRequest } }])
        let sent = try await sent(service, request)
        let shown = try #require(seen.withLock { $0 })
        for built in [sent.request, shown] {
            #expect(built.url?.absoluteString == "https://elsewhere.example/new")
            #expect(built.value(forHTTPHeaderField: "X") == "p")
        }
    }

    @Test("Hooks see the exact content, and content that prepare sets is sent", arguments: [true, false])
    func content(_ prepares: Bool) async throws {
        let seen = Mutex<[Data?]>([])
        struct Looking: RequestHook {
            let look: @Sendable (URLRequest) -> Void
            func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) -> R.Result? {
                look(urlRequest)
                return nil
            }
            func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) { look(urlRequest) }
        }
        var request = CallFixtures.text(.put)
        request.body = .data(Data("old".utf8))
        if prepares {
            request.preparing = { built in
                var built = built
                built.httpBody = Data("new".utf8)
                return built
            }
        }
        let service = CallFixtures.service(hooks: [Looking { one in seen.withLock { $0.append(one.httpBody) } }])
        let sent = try await sent(service, request)
        let expected = prepares ? "new" : "old"
        #expect(sent.body == ByteChunk(copying: expected.utf8))
        #expect(seen.withLock { $0 } == [Data(expected.utf8), Data(expected.utf8)])
    }

    @Test(
        "S-T8: a request that cannot be built reaches onFailure and process once, and never onSchedule",
        arguments: Flaw.allCases
    )
    func unbuildable(_ flaw: Flaw) async throws {
        let log = CallFixtures.Log()
        let transport = ScriptedTransport([])
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        var request = CallFixtures.text(.post)
        var code = "bad-request"
        switch flaw {
        case .body:
            request.body = HttpBody { throw CallFixtures.NotText() }
            code = "encoding-failed"
        case .noHost: service.apiUrl = ""
        case .badHost: service.apiUrl = "exa mple.com"
        case .header:
            service.makeHeader = { throw CallFixtures.NotText() }
            code = "NotText()"
        case .credential:
            request.authorizationRequirement = .required
            code = "authorization-failed"
        }
        let failing = request
        let error = await #expect(throws: (any Error).self) {
            try await failing.schedule(with: CallFixtures.client(service, transport))
        }
        #expect(log.entries == ["a.failure(\(code))", "process(\(code))"])
        #expect(transport.sent.isEmpty)
        if let error = error as? ServiceError { #expect(error.progress == .notSent) }
    }

    enum Flaw: CaseIterable { case body, noHost, badHost, header, credential }

    @Test("S-T9: a GET with content fails before the hooks", arguments: [HttpMethod.get, .head, .trace])
    func contentInGet(_ method: HttpMethod) async throws {
        let log = CallFixtures.Log()
        let transport = ScriptedTransport([])
        let service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        var request = CallFixtures.text(method)
        request.body = .data(Data("x".utf8))
        let failing = request
        let error = await #expect(throws: ServiceError.self) {
            try await failing.schedule(with: CallFixtures.client(service, transport))
        }
        #expect(error?.code == .badRequest)
        let call = try #require(error?.subject)
        #expect("\(call)".hasPrefix("\(method) https://") && "\(call)".hasSuffix("/text"))
        #expect(call.operationName == "AnyRequest<String>")
        #expect(log.entries == ["a.failure(bad-request)", "process(bad-request)"])
    }

    @Test("S-T10: a POST or PUT without content is sent", arguments: [HttpMethod.post, .put])
    func emptyPost(_ method: HttpMethod) async throws {
        let sent = try await sent(CallFixtures.service(), CallFixtures.text(method))
        #expect(sent.request.httpMethod == method.rawValue)
        #expect(sent.body?.isEmpty == true)
        #expect(sent.field("Content-Type") == nil)
    }

    @Test(
        "S-T38: the query of apiUrl is kept, and a scheme in it is honored",
        arguments: [
            ("http://api.example.com", true, "http://api.example.com/text"),
            ("https://api.example.com", false, "https://api.example.com/text"),
            (
                "api.example.com/v2/?back=http://other.example/", true,
                "https://api.example.com/v2/text?back=http://other.example/"
            ),
            ("localhost:8080", false, "http://localhost:8080/text"),
            ("[::1]:8080/a#b", false, "http://[::1]:8080/a/text"),
        ]
    )
    func scheme(_ apiUrl: String, _ isSecure: Bool, _ expected: String) async throws {
        var service = CallFixtures.service()
        service.apiUrl = apiUrl
        service.usesSecureProtocol = isSecure
        #expect(try await sent(service).request.url?.absoluteString == expected)
    }

    @Test("A request's own URL and protocol win over the service's")
    func ownURL() async throws {
        var request = CallFixtures.text()
        request.url = "other.example/x?z=1"
        request.usesSecureProtocol = false
        request.query = ["b": 1, "a": 2]
        let sent = try await sent(CallFixtures.service(), request)
        #expect(sent.request.url?.absoluteString == "http://other.example/x/text?z=1&a=2&b=1")
    }

    @Test("The error for a bad URL shows neither password nor query")
    func noCredentialsInErrors() async throws {
        var service = CallFixtures.service()
        service.apiUrl = "user:secret@exa mple.com/a?token=secret"
        let bad = service
        let error = await #expect(throws: ServiceError.self) { try await sent(bad) }
        #expect(error?.description.contains("secret") == false)
        #expect(error?.description.hasPrefix("GET: ") == true)
        #expect(error?.code == .badRequest)
    }

    @Test(
        "A credential is sent as the request requires: over both headers, under the request's own",
        arguments: [
            (.optional, nil, "Bearer t"), (.required, nil, "Bearer t"),
            (.none, nil, nil), (.optional, "own", "own"), (.none, "own", "own"),
        ] as [(AuthorizationRequirement, String?, String?)]
    )
    func requirement(_ requirement: AuthorizationRequirement, _ own: String?, _ expected: String?) async throws {
        var service = CallFixtures.service()
        service.header = ["Authorization": "s"]
        service.makeHeader = { ["Authorization": "a"] }
        service.findAuthorization = { .bearer("t") }
        var request = CallFixtures.text()
        request.authorizationRequirement = requirement
        if let own { request.header = ["Authorization": own] }
        #expect(try await sent(service, request).field("Authorization") == expected)
    }

    @Test("A request that wants no credential does not get the pipeline's either", arguments: [false, true])
    func noCredential(_ isWanted: Bool) async throws {
        var service = CallFixtures.service()
        service.pipelineConfiguration.authorization = .bearer(token: "t", for: ["https://api.example.com"]) { _ in "t" }
        var request = CallFixtures.text()
        if !isWanted { request.authorizationRequirement = .none }
        #expect(try await sent(service, request).field("Authorization") == (isWanted ? "Bearer t" : nil))
    }

    @Test("A required credential that the pipeline has only for other origins is missing", arguments: [true, false])
    func uncovered(_ isCovered: Bool) async throws {
        var service = CallFixtures.service()
        let origin = isCovered ? "https://api.example.com" : "https://other.example"
        service.pipelineConfiguration.authorization = .bearer(token: "t", for: .origins([origin])) { _ in "t" }
        var request = CallFixtures.text()
        request.authorizationRequirement = .required
        let transport = ScriptedTransport([.respond(200)])
        let client = CallFixtures.client(service, transport)
        do {
            _ = try await request.schedule(with: client)
            #expect(isCovered)
        } catch let error as ServiceError {
            #expect(error.code == .authorizationFailed && !isCovered)
        }
        #expect(transport.sent.map { $0.field("Authorization") } == (isCovered ? ["Bearer t"] : []))
    }

    @Test("A priority tells the platform how urgent a request is")
    func priority() async throws {
        var request = CallFixtures.text()
        #expect(request.priority == .userInitiated)
        request.priority = .utility
        #expect(try await sent(CallFixtures.service(), request).request.networkServiceType == .background)
        request.priority = .default
        #expect(try await sent(CallFixtures.service(), request).request.networkServiceType == .default)
    }
}
