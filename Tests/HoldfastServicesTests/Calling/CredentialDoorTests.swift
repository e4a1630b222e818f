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

/// However a credential comes into a typed call, by a field that nobody knows, the same holds for it.
@Suite("Ways to set a credential", .timeLimit(.minutes(20)))
struct CredentialDoorTests {
    enum Door: CaseIterable {
        case header, asyncHeader, authorization, configurationAuthorization, credentialFields, requestHeader, prepare
        case proxyHeaders, proxyAuthorization, endpointConfigure, endpointAuthorization
    }

    /// Who is logged in.
    private final class Session: Sendable {
        private let state = Mutex("alice-0001")
        var token: String {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    private static let field = "X-Tenant-Thing"
    /// Of a request's own fields those count whose names say it.
    private static func field(of door: Door) -> String { door == .requestHeader ? "X-Api-Key" : field }
    private static let fresh: HeaderFields = ["Cache-Control": "max-age=60"]
    private let session = Session()
    private let log = CallFixtures.Log()

    private struct Doors: WebService {
        static var shared: ServiceClient<Doors> { ServiceClient(Doors(token: { "" }, isConfigured: false)) }
        let baseURL = URL(string: "https://api.example.com") ?? URL(fileURLWithPath: "/")
        let token: @Sendable () -> String
        let isConfigured: Bool
        var hooks: [any ServiceHook] = []
        var requestHooks: [any RequestHook] = []
        var authorization: Authorization {
            isConfigured ? .none : .custom(key: FieldName(field) ?? .authorization, value: token())
        }
        func configure(_ request: inout URLRequest, for endpoint: some Endpoint) {
            if isConfigured { request.setValue(token(), forHTTPHeaderField: field) }
        }
    }

    private struct Get: OutEndpoint {
        typealias Service = Doors
        typealias Output = String
        let path = "text"
    }

    /// Sends one GET whose credential comes in by a door, through a pipeline that logs by both kinds of hook.
    private func client(
        of door: Door,
        _ transport: ScriptedTransport,
        renewing: Bool = false
    ) throws -> @Sendable () async throws -> String {
        let (session, log) = (session, log)
        let name = try #require(FieldName(Self.field))
        let logger = CallLogger { log.note($0) }
        let token: @Sendable () -> String = { session.token }
        var configuration = PipelineConfiguration()
        let refreshes = door == .configurationAuthorization || door == .proxyAuthorization
        // A refresh has a time limit, which a clock that advances by itself may reach before the refresh has ended.
        configuration.clock = ManualClock(autoAdvances: !refreshes)
        if refreshes {
            configuration.authorization = AuthorizationRefresh(
                credential: session.token,
                for: ["https://api.example.com"],
                apply: { $1.setValue($0, forHTTPHeaderField: Self.field) },
                refresh: { _ in
                    session.token = "renewed-0003"
                    return session.token
                }
            )
        }
        let retrier: any RetrierFactory =
            renewing && configuration.authorization == nil
            ? AnyRetrierFactory { _ in
                CallFixtures.ClosureRetrier(allowsMultipleRetries: false) { attempt in
                    guard attempt.response?.status == .unauthorized else { return .stop(.retrierDeclined) }
                    session.token = "renewed-0003"
                    return .retryNow
                }
            } : .never
        switch door {
        case .proxyHeaders, .proxyAuthorization:
            let proxy = WebServiceProxy(
                transport: transport,
                baseURL: try url("https://api.example.com"),
                cache: sharedCache,
                retrierFactory: retrier,
                hooks: [logger],
                requestHooks: [logger],
                configuration: configuration
            )
            return {
                var proxy = proxy
                if door == .proxyHeaders { proxy.headers[name] = token() }
                return try await proxy.invoke(.get, path: "text") { content, _ in
                    String(decoding: content, as: UTF8.self)
                }
            }
        case .endpointConfigure, .endpointAuthorization:
            let service = Doors(
                token: token,
                isConfigured: door == .endpointConfigure,
                hooks: [logger],
                requestHooks: [logger]
            )
            let client = ServiceClient(
                service,
                transport: transport,
                cache: sharedCache,
                retrierFactory: retrier,
                configuration: configuration
            )
            return { try await Get().makeRequest(to: client) }
        default:
            var service = HeaderService(token: door == .header ? token : nil)
            service.retrierFactory = retrier
            service.hooks = [logger]
            service.requestHooks = [logger]
            if door == .asyncHeader { service.makeHeader = { [name: token()] } }
            if door == .authorization { service.findAuthorization = { .custom(key: name, value: token()) } }
            let client = ServiceClient(service, transport: transport, cache: sharedCache, configuration: configuration)
            return {
                var request = CallFixtures.text()
                if door == .requestHeader { request.header = ["X-Api-Key": token()] }
                if door == .credentialFields { request.options.credentialFields = [name] }
                if door == .prepare || door == .credentialFields {
                    request.preparing = { built in
                        var built = built
                        built.setValue(token(), forHTTPHeaderField: Self.field)
                        return built
                    }
                }
                return try await request.schedule(with: client)
            }
        }
    }

    private let sharedCache = HTTPCache.inMemory()

    /// A service whose header is another one each time.
    private struct HeaderService: HttpService {
        let token: (@Sendable () -> String)?
        var retrierFactory: any RetrierFactory = .never
        var hooks: [any ServiceHook] = []
        var requestHooks: [any RequestHook] = []
        var makeHeader: @Sendable () async throws -> HttpHeader = { HttpHeader() }
        var findAuthorization: @Sendable () async throws -> Authorization = { .none }

        init(token: (@Sendable () -> String)?) { self.token = token }

        var apiUrl: any UrlConvertible { "api.example.com" }
        var header: HttpHeader { token.map { ["X-Tenant-Thing": $0()] } ?? HttpHeader() }
        var asyncHeader: HttpHeader { get async throws { try await makeHeader() } }
        var authorization: Authorization { get async throws { try await findAuthorization() } }
    }

    @Test(
        "It selects the partition: another user, or a guest, gets nothing of the first user's",
        arguments: Door.allCases
    )
    func partition(_ door: Door) async throws {
        let transport = ScriptedTransport(
            ["alice's", "bob's", "a guest's"].map { .respond(200, Self.fresh, body: $0) },
            repeatsLastStep: true
        )
        let alice = try client(of: door, transport)
        #expect(try await alice() == "alice's")
        #expect(try await alice() == "alice's")
        #expect(transport.sent.count == 1)
        session.token = "bob-00002"
        let bob = try client(of: door, transport)
        #expect(try await bob() == "bob's")
        #expect(transport.sent.map { $0.field(Self.field(of: door)) } == ["alice-0001", "bob-00002"])
        let guest = ServiceClient(CallFixtures.service(), transport: transport, cache: sharedCache)
        #expect(try await CallFixtures.text().schedule(with: guest) == "a guest's")
        session.token = "alice-0001"
        #expect(try await client(of: door, transport)() == "alice's")
        #expect(transport.sent.count == 3)
    }

    @Test(
        "It is not sent when a redirect leaves the origin, and is sent otherwise",
        arguments: Door.allCases
    )
    func redirect(_ door: Door) async throws {
        let transport = ScriptedTransport([
            .respond(307, ["Location": "/here"]), .respond(302, ["Location": "https://elsewhere.example/x"]),
            .respond(200, body: "ok"),
        ])
        #expect(try await client(of: door, transport)() == "ok")
        #expect(transport.sent.map { $0.field(Self.field(of: door)) } == ["alice-0001", "alice-0001", nil])
    }

    @Test("It is never logged, by either kind of logger", arguments: Door.allCases)
    func logged(_ door: Door) async throws {
        let transport = ScriptedTransport([
            .respond(200, ["X-Echo": "alice-0001", "Link": "</?t=alice-0001>"], body: "ok"), .respond(503),
        ])
        let send = try client(of: door, transport)
        _ = try await send()
        _ = try? await send()
        #expect(log.entries.count >= 8)
        for entry in log.entries { #expect(!entry.contains("alice-0001"), "\(entry)") }
    }

    @Test(
        "A retry after 401 has the newest credential, and its response is stored for nobody else",
        arguments: Door.allCases.filter { $0 != .proxyHeaders && $0 != .requestHeader }
    )
    func refreshed(_ door: Door) async throws {
        let transport = ScriptedTransport([
            .respond(401), .respond(200, Self.fresh, body: "renewed"), .respond(200, Self.fresh, body: "alice's"),
        ])
        let send = try client(of: door, transport, renewing: true)
        #expect(try await send() == "renewed")
        #expect(transport.sent.map { $0.field(Self.field) } == ["alice-0001", "renewed-0003"])
        session.token = "alice-0001"
        #expect(try await client(of: door, transport)() == "alice's")
    }
}
