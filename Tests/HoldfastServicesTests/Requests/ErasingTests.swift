// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Services and requests made from values", .timeLimit(.minutes(20)))
struct ErasingTests {
    @Test("AnyHttpService calls process, once, after the hooks")
    func process() async throws {
        let log = CallFixtures.Log()
        let transport = ScriptedTransport([.respond(500), .respond(200)])
        let service = AnyHttpService(
            at: "api.example.com",
            requestHooks: [CallFixtures.NotingHook(name: "a", log: log)],
            process: { log.note("process(\(CallFixtures.word($0)))") }
        )
        let client = ServiceClient(service, transport: transport)
        await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)"])
    }

    @Test("Each member of AnyHttpService that is set is used")
    func members() async throws {
        struct Tagging: ServiceHook {
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                request.setValue("yes", forHTTPHeaderField: "Hooked")
                return nil
            }
        }
        let log = CallFixtures.Log()
        let transport = ScriptedTransport([
            .respond(503), .respond(200, ["Cache-Control": "max-age=60"], body: "ok"), .respond(500),
        ])
        var service = AnyHttpService(at: "old.example")
        service.apiUrl = "api.example.com/v2"
        service.usesSecureProtocol = false
        service.header = ["A": "1"]
        service.makeHeader = { ["B": "2"] }
        service.findAuthorization = { .basic("user", "secret") }
        service.sessionConfiguration = .ephemeral
        service.transport = transport
        service.cache = .inMemory()
        service.retrierFactory = .default
        service.hooks = [Tagging()]
        service.requestHooks = [CallFixtures.NotingHook(name: "a", log: log)]
        service.pipelineConfiguration.clock = ManualClock(autoAdvances: true)
        service.processError = { log.note("process(\(CallFixtures.word($0)))") }
        let client = ServiceClient(service)
        for _ in 0..<2 { #expect(try await CallFixtures.text().schedule(with: client) == "ok") }
        let sent = try #require(transport.sent.last)
        #expect(transport.sent.count == 2)
        #expect(sent.request.url?.absoluteString == "http://api.example.com/v2/text")
        #expect(["A", "B", "Hooked"].map { sent.field($0) } == ["1", "2", "yes"])
        #expect(sent.field("Authorization") == "Basic dXNlcjpzZWNyZXQ=")
        #expect(log.entries.last == "a.success(ok, fresh)")
        var post = CallFixtures.text(.post)
        post.options.retryRules = RetryRules.never
        let failing = post
        await #expect(throws: ServiceError.self) { try await failing.schedule(with: client) }
        #expect(log.entries.last == "process(unacceptable-status)")
    }

    @Test("The defaults of AnyHttpService are those of HttpService")
    func defaults() async throws {
        struct Plain: HttpService {
            var apiUrl: any UrlConvertible { "api.example.com" }
        }
        func check(_ service: some HttpService) async throws {
            #expect(service.apiUrl.urlText == "api.example.com")
            #expect(service.usesSecureProtocol)
            #expect(service.header.isEmpty)
            #expect(try await service.asyncHeader.isEmpty)
            #expect(try await service.authorization == Authorization.none)
            #expect(service.cache == nil)
            #expect(service.retrierFactory is NilRetrier.Factory)
            #expect(service.hooks.isEmpty)
            #expect(service.requestHooks.isEmpty)
            #expect(service.transport is URLSessionTransport)
            service.process(CallFixtures.NotText())
        }
        try await check(Plain())
        try await check(AnyHttpService(at: "api.example.com"))
    }

    @Test("S6: one request runs against services of several environments")
    func environments() async throws {
        for host in ["staging.example.com", "api.example.com"] {
            let transport = ScriptedTransport([.respond(200, body: host)])
            let client = ServiceClient(AnyHttpService(at: host), transport: transport)
            #expect(try await CallFixtures.text().schedule(with: client) == host)
            #expect(transport.sent.first?.request.url?.host == host)
        }
    }

    @Test("AnyRequest sends its method, route, query, header and content, and by default its result is data")
    func anyRequest() async throws {
        let transport = ScriptedTransport([.respond(200, body: "ok")])
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        let request = AnyRequest(
            .patch,
            routes: ["users", 7],
            query: ["full": "yes"],
            header: ["X": "1"],
            body: .data(Data("new".utf8), contentType: "text/plain")
        )
        #expect(try await request.schedule(with: client) == Data("ok".utf8))
        let sent = try #require(transport.sent.first)
        #expect(sent.request.url?.absoluteString == "https://api.example.com/users/7?full=yes")
        #expect(sent.request.httpMethod == "PATCH")
        #expect(sent.field("X") == "1")
        #expect(sent.field("Content-Type") == "text/plain")
        #expect(sent.body == ByteChunk(copying: "new".utf8))
    }

    @Test("AnyRequest uses its accepted statuses and its content limit")
    func anyRequestLimits() async throws {
        let transport = ScriptedTransport([.respond(404, body: "none"), .respond(200, body: "four")])
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var request = AnyRequest()
        request.acceptedStatusCodes = 200...404
        #expect(try await request.schedule(with: client) == Data("none".utf8))
        request.contentLimit = 3
        let limited = request
        let error = await #expect(throws: ServiceError.self) { try await limited.schedule(with: client) }
        #expect(error?.code == .bodyTooLarge)
    }
}
