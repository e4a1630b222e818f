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

@Suite("ServiceMock", .timeLimit(.minutes(20)))
struct ServiceMockTests {
    struct Service: WebService {
        static let shared = ServiceClient(Service(), transport: ScriptedTransport([]))
        var baseURL: URL { EndpointBed.Service().baseURL }
        var retrierFactory: any RetrierFactory { .default }
        var credential = Authorization.none
        var authorization: Authorization { get async throws { credential } }
    }

    struct CheckStatus: EmptyEndpoint {
        typealias Service = ServiceMockTests.Service
        let path = "status"
    }

    struct GetObject: OutEndpoint {
        typealias Service = ServiceMockTests.Service
        struct Output: Codable, Sendable, Equatable { var name: String }
        let objectId: Int
        var path: String { "object/\(objectId)" }
    }

    struct Login: InOutEndpoint {
        typealias Service = ServiceMockTests.Service
        struct Input: Encodable, Sendable {
            var username: String
            var password: String
        }
        struct Output: Codable, Sendable, Equatable { var token: String }
        static let method = Method.post
        let path = "login"
    }

    struct Find: InEndpoint {
        typealias Service = ServiceMockTests.Service
        typealias Input = [String: String?]
        static let inputFormat = InputFormat.urlQuery
        let path = "find"
    }

    struct Upload: InEndpoint {
        typealias Service = ServiceMockTests.Service
        struct Input: Encodable, Sendable {
            var title: String
            var file = File(name: "f.txt", content: Data("bytes".utf8), type: "text/plain")
        }
        static let method = Method.post
        static let inputFormat = InputFormat.formData
        let path = "upload"
    }

    struct Secret: EmptyEndpoint {
        typealias Service = ServiceMockTests.Service
        static let authorizationRequirement = AuthorizationRequirement.required
        let path = "secret"
    }

    private func failure(_ call: () async throws -> Void) async -> MockFailure.Code? {
        do {
            try await call()
            return nil
        } catch {
            return MockFailure(in: error)?.code
        }
    }

    private var configuration: PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        return configuration
    }

    @Test("Each kind of endpoint is answered in the order of the expectations, and all of them are verified")
    func kinds() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        mock.expect(CheckStatus.self, path: "status")
        try mock.expect(GetObject.self, path: "object/7", returning: GetObject.Output(name: "seven"))
        try mock.expect(
            Login.self,
            input: Login.Input(username: "ann", password: "pw"),
            returning: Login.Output(token: "t")
        )
        mock.expect(Find.self, input: ["a": "1", "b": "&="])
        mock.expect(Upload.self, input: Upload.Input(title: "x"))
        mock.expect(GetObject.self, respond: .content("file", type: "text/plain"))
        #expect(mock.unmet.count == 6)

        try await CheckStatus().makeRequest(to: client)
        #expect(try await GetObject(objectId: 7).makeRequest(to: client).name == "seven")
        let login = Login.Input(username: "ann", password: "pw")
        #expect(try await Login().makeRequest(to: client, with: login).token == "t")
        try await Find().makeRequest(to: client, with: ["a": "1", "b": "&="])
        try await Upload().makeRequest(to: client, with: Upload.Input(title: "x"))
        let file = try await GetObject(objectId: 8).makeDownloadRequest(to: client)
        _ = file
        try mock.verify()
        try await mock.waitForAll()
        #expect(mock.requests.map(\.path).last == "/api/v1/object/8")
    }

    @Test("Concurrent endpoints with the same path are distinguished")
    func sharedPath() async throws {
        for _ in 0..<20 {
            let mock = ServiceMock()
            let client = mock.client(of: Service(), configuration: configuration)
            mock.handleAll { _ in .status(500) }
            for _ in 0..<10 { mock.expect(CheckStatus.self) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<20 {
                    group.addTask {
                        if index.isMultiple(of: 2) {
                            try await CheckStatus().makeRequest(to: client)
                        } else {
                            _ = try? await Other().makeRequest(to: client)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(mock.unmet.isEmpty && mock.failures.allSatisfy { $0.code == .wrongType })
        }
    }

    /// Asks for what ``CheckStatus`` asks for.
    struct Other: EmptyEndpoint {
        typealias Service = ServiceMockTests.Service
        let path = "status"
    }

    @Test(
        "An expected path is compared exactly, and a URL with its origin",
        arguments: [
            ("", "https://a.example/", true), ("", "https://a.example", true), ("", "https://a.example/x", false),
            ("/x", "https://a.example/x", true), ("/x", "https://a.example/x/", false),
            ("x/", "https://a.example/x", false),
            ("x/", "https://a.example/v1/x/", true), ("x", "https://a.example/box", false),
            ("/", "https://a.example", true),
            ("https://a.example/x", "https://a.example/x?q=1", true),
            ("https://a.example/x", "https://b.example/x", false),
            ("https://A.example:443/x", "https://a.example/x", true),
            ("http://a.example/x", "https://a.example/x", false),
            ("https://a.example", "https://a.example/", true), ("/a b", "https://a.example/a%20b", true),
        ]
    )
    func paths(_ expected: String, _ url: String, _ isMet: Bool) async throws {
        let mock = ServiceMock()
        mock.expect(.get, path: expected)
        let request = URLRequest(url: try #require(URL(string: url)))
        let code = await failure { _ = try await Pipeline(transport: mock).send(request) }
        #expect(code == (isMet ? nil : .wrongPath))
    }

    @Test(
        "D-T26: no expectation and wrong type, path or input are four errors, sent once, and use up no expectation"
    )
    func mismatches() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        #expect(await failure { try await CheckStatus().makeRequest(to: client) } == .noExpectation)

        try mock.expect(GetObject.self, path: "object/7", returning: GetObject.Output(name: "seven"))
        #expect(await failure { try await CheckStatus().makeRequest(to: client) } == .wrongType)
        #expect(await failure { _ = try await GetObject(objectId: 8).makeRequest(to: client) } == .wrongPath)
        #expect(try await GetObject(objectId: 7).makeRequest(to: client).name == "seven")

        try mock.expect(
            Login.self,
            input: Login.Input(username: "ann", password: "pw"),
            returning: Login.Output(token: "t")
        )
        let wrong = Login.Input(username: "ann", password: "other")
        #expect(await failure { _ = try await Login().makeRequest(to: client, with: wrong) } == .wrongInput)
        #expect(mock.unmet == ["Login"])
        let right = Login.Input(username: "ann", password: "pw")
        #expect(try await Login().makeRequest(to: client, with: right).token == "t")

        #expect(mock.unmet.isEmpty)
        #expect(mock.failures.map(\.code) == [.noExpectation, .wrongType, .wrongPath, .wrongInput])
        #expect(mock.requests.count == 6)
        #expect(throws: MockFailure.self) { try mock.verify() }
    }

    @Test("D-T26: input is also compared in a query, in a multipart form, and by `validate`")
    func otherInput() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        mock.expect(Find.self, input: ["a": "1"])
        #expect(await failure { try await Find().makeRequest(to: client, with: ["a": "1", "b": "2"]) } == .wrongInput)
        #expect(await failure { try await Find().makeRequest(to: client, with: ["a": "2"]) } == .wrongInput)
        try await Find().makeRequest(to: client, with: ["a": "1"])
        mock.expect(Upload.self, input: Upload.Input(title: "x"))
        #expect(
            await failure { try await Upload().makeRequest(to: client, with: Upload.Input(title: "y")) } == .wrongInput
        )
        try await Upload().makeRequest(to: client, with: Upload.Input(title: "x"))
        // Bytes that are no text differ too.
        let images = [0xFE, 0xFF].map { byte in
            Upload.Input(title: "x", file: File(name: "i", content: Data([byte]), type: "image/png"))
        }
        mock.expect(Upload.self, input: images[0])
        #expect(await failure { try await Upload().makeRequest(to: client, with: images[1]) } == .wrongInput)
        try await Upload().makeRequest(to: client, with: images[0])
        struct Refused: Error {}
        mock.expect(CheckStatus.self, validate: { request in if request.method == .get { throw Refused() } })
        #expect(await failure { try await CheckStatus().makeRequest(to: client) } == .wrongInput)
        #expect(mock.unmet == ["CheckStatus"])
    }

    @Test("D-T27: a missing required credential fails before the mock, which keeps its expectation")
    func required() async throws {
        let mock = ServiceMock()
        mock.expect(Secret.self)
        // A token that is empty is none, as before a log-in.
        for credential in [Authorization.none, .bearer(""), .custom(key: "X-Key", value: "")] {
            let client = mock.client(of: Service(credential: credential), configuration: configuration)
            let error = await #expect(throws: EndpointError.self) { try await Secret().makeRequest(to: client) }
            #expect(error?.code == .unauthorized)
        }
        #expect(mock.requests.isEmpty)
        let service = Service(credential: .bearer("t"))
        try await Secret().makeRequest(to: mock.client(of: service, configuration: configuration))
        #expect(mock.requests.first?.fields[.authorization] == "Bearer t")
        try mock.verify()
    }

    @Test("The whole pipeline is above the mock: a failure is retried, a status checked")
    func pipeline() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        let lost = ServiceError(.connectionLost, "lost", progress: .bodySent)
        mock.expect(CheckStatus.self, respond: .failure(lost))
        mock.expect(CheckStatus.self, respond: .status(503))
        mock.expect(CheckStatus.self, respond: .status(204))
        try await CheckStatus().makeRequest(to: client)
        #expect(mock.requests.count == 3)
        mock.expect(CheckStatus.self, respond: .content(#"{"e":1}"#, status: 404))
        let error = await #expect(throws: EndpointError.self) { try await CheckStatus().makeRequest(to: client) }
        #expect(error?.status == 404)
        try mock.verify()
    }

    @Test("D24: endpoints sent to the shared client can be mocked for the tasks of one operation")
    func shared() async throws {
        let mock = ServiceMock()
        mock.expect(CheckStatus.self)
        try await Service.withShared(mock.client(of: Service(), configuration: configuration)) {
            try await CheckStatus().makeRequest()
        }
        try mock.verify()
    }

    @Test("Requests of other APIs are expected by method and path; a typed expectation needs the mock's own client")
    func plain() async throws {
        let mock = ServiceMock()
        let pipeline = Pipeline(transport: mock)
        let url = try #require(URL(string: "https://example.com/a/b%20c?x=1"))
        mock.expect(.get, path: "/a/b c", validate: { #expect($0.query["x"] == "1") }, respond: .content("one"))
        mock.expect(.post, path: "b c", respond: .status(201))
        mock.expect(CheckStatus.self)
        var request = URLRequest(url: url)
        #expect(try await String(decoding: pipeline.send(request).body.collect().array, as: UTF8.self) == "one")
        #expect(await failure { _ = try await pipeline.send(request) } == .wrongMethod)
        request.httpMethod = "POST"
        request.httpBodyStream = InputStream(data: Data(#"{"n":7}"#.utf8))
        #expect(try await pipeline.send(request).status.rawValue == 201)
        #expect(try mock.requests.last?.decoded(as: [String: Int].self) == ["n": 7])
        // A stream can be read once.
        request.httpBodyStream = InputStream(data: Data("{}".utf8))
        #expect(await failure { _ = try await pipeline.send(request) } == .wrongType)
        #expect(mock.unmet == ["CheckStatus"])
    }

    @Test("D25: one handler answers all requests while none is expected")
    func handler() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        mock.handleAll { request in .content(#"{"name":"\#(request.path)"}"#) }
        try mock.expect(GetObject.self, returning: GetObject.Output(name: "expected"))
        #expect(try await GetObject(objectId: 1).makeRequest(to: client).name == "expected")
        #expect(try await GetObject(objectId: 2).makeRequest(to: client).name == "/api/v1/object/2")
        mock.stopHandlingAll()
        #expect(await failure { _ = try await GetObject(objectId: 3).makeRequest(to: client) } == .noExpectation)
    }

    @Test(
        "Waiting ends when the last expectation is met, or with an error on timeout or cancellation"
    )
    func waiting() async throws {
        let mock = ServiceMock()
        let client = mock.client(of: Service(), configuration: configuration)
        mock.expect(CheckStatus.self)
        let clock = ManualClock()
        async let waited: Void = mock.waitForAll(clock: clock)
        try await clock.waitForSleeps(1)
        try await CheckStatus().makeRequest(to: client)
        try await waited

        mock.expect(CheckStatus.self)
        let late = ManualClock()
        let inVain = Task { try await mock.waitForAll(timeout: .seconds(3), clock: late) }
        try await late.waitForSleeps(1)
        late.advance(by: .seconds(3))
        let error = await #expect(throws: MockFailure.self) { try await inVain.value }
        #expect(error?.code == .unmetExpectations)
        #expect(throws: MockFailure.self) { try mock.verify() }

        let cancelled = Task { try await mock.waitForAll(clock: ManualClock()) }
        cancelled.cancel()
        await #expect(throws: (any Error).self) { try await cancelled.value }
    }
}
