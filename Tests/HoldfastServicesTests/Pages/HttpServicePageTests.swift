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

/// The types of docs/services/http-service.md.
private enum Page {
    struct Note: Codable, Sendable, Equatable {
        var id: Int?
        var noteText: String
    }

    struct NotesApi: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com/v1" }
        var header: HttpHeader { ["X-Client": "notes/1.0"] }
        var cache: HTTPCache? { .default }
        var retrierFactory: any RetrierFactory { .default }
    }

    struct GetNote: JsonRequest {
        typealias Result = Note
        let id: Int
        var routes: HttpRoute { ["notes", id] }
    }

    struct PostNote: JsonRequest {
        typealias Result = Note
        let note: Note
        var method: HttpMethod { .post }
        var routes: HttpRoute { ["notes"] }
        var body: HttpBody { .json(note, keys: .convertToSnakeCase) }
    }

    struct Journal: RequestHook {
        let write: @Sendable (String) -> Void

        func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) -> R.Result? {
            write("\(R.self) begins")
            return nil
        }

        func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) {
            write("\(R.self) is done")
        }

        func onFailure(_ error: any Error) {
            write("failed: \(error)")
        }
    }

    struct RenewToken: JsonRequest {
        struct Result: Decodable, Sendable {
            let token: String
        }
        var method: HttpMethod { .post }
        var routes: HttpRoute { ["token"] }
    }

    actor Session {
        private(set) var token = "old"
        private let accounts: ServiceClient<AnyHttpService>
        private var renewal: Task<Void, any Error>?

        init(accounts: ServiceClient<AnyHttpService>) {
            self.accounts = accounts
        }

        /// Renews the token unless another call has done so since `used` was sent; calls that come meanwhile wait for the same renewal.
        func renew(after used: String?) async throws {
            guard used == "Bearer \(token)" else { return }
            let renewal =
                renewal
                ?? Task {
                    defer { self.renewal = nil }
                    token = try await RenewToken().schedule(with: accounts).token
                }
            self.renewal = renewal
            try await renewal.value
        }
    }

    struct RenewingRetrier: Retrier {
        let session: Session

        func retry(
            _ request: URLRequest,
            after attempt: FailedAttempt,
            context: CallContext
        ) async -> RetryDecision {
            guard attempt.response?.status == .unauthorized else { return .stop(.retrierDeclined) }
            let used = context.exchange?.request.value(forHTTPHeaderField: "Authorization")
            do {
                try await session.renew(after: used)
                return .retryNow
            } catch {
                return .stop(.unauthorized)
            }
        }
    }

    struct PrivateApi: HttpService {
        let session: Session
        var apiUrl: any UrlConvertible { "api.example.com/v1" }
        var authorization: Authorization { get async { .bearer(await session.token) } }
        var retrierFactory: any RetrierFactory {
            .chain(AnyRetrierFactory { _ in RenewingRetrier(session: session) }, .default)
        }
    }

    enum NotesError: Error {
        case noSuchNote, cancelled, offline
        case other(any Error)
    }

    struct MappedApi: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com/v1" }

        func mapError(_ error: any Error) -> NotesError {
            switch error {
            case is CancellationError: .cancelled
            case let error as ServiceError where error.response?.status == .notFound: .noSuchNote
            case let error as ServiceError where error.code == .offline: .offline
            default: .other(error)
            }
        }
    }
}

/// The code of docs/services/http-service.md, block by block.
@Suite("The page on HttpService", .timeLimit(.minutes(20)))
struct HttpServicePageTests {
    private typealias Note = Page.Note
    private typealias GetNote = Page.GetNote
    private typealias PostNote = Page.PostNote
    private typealias NotesApi = Page.NotesApi

    private static let note = #"{"id": 7, "note_text": "hello"}"#

    /// What the page prints.
    private final class Printed: Sendable {
        let lines = Mutex<[String]>([])
        func print(_ values: Any...) {
            let line = values.map { "\($0)" }.joined(separator: " ")
            lines.withLock { $0.append(line) }
        }
    }

    private func client<Service: HttpService>(
        _ service: Service,
        _ transport: ScriptedTransport
    ) -> ServiceClient<Service> {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        return ServiceClient(service, transport: transport, configuration: configuration)
    }

    @Test("A first call and its result")
    func quickStart() async throws {
        do {
            let client = ServiceClient(NotesApi())
            #expect(client.pipeline.cache != nil)
        }
        let transport = ScriptedTransport([
            .respond(503), .respond(200, ["Cache-Control": "max-age=60"], body: Self.note),
            .respond(201, body: Self.note),
        ])
        let client = client(NotesApi(), transport)
        let page = Printed()
        let print = page.print

        let note = try await GetNote(id: 7).schedule(with: client)

        let answer = try await client.response(to: GetNote(id: 7))
        print(answer.value, answer.response.source, answer.response.attempts.count)

        let made = try await PostNote(note: Note(noteText: "new")).schedule(with: client)
        #expect(note == Note(id: 7, noteText: "hello"))
        #expect(answer.response.source == .fresh)
        #expect(made == note)
        #expect(transport.sent.last?.body.map { String(decoding: $0, as: UTF8.self) } == #"{"note_text":"new"}"#)
        #expect(page.lines.withLock { $0.count } == 1)
    }

    @Test("A hook")
    func hook() async throws {
        let transport = ScriptedTransport([.respond(200, body: Self.note), .respond(404)])
        let service = NotesApi()
        let page = Printed()
        let journal = Page.Journal { page.print($0) }
        let client = ServiceClient(service, transport: transport, requestHooks: [journal])
        _ = try await GetNote(id: 17).schedule(with: client)
        await #expect(throws: ServiceError.self) { try await GetNote(id: 18).schedule(with: client) }
        let lines = page.lines.withLock { $0 }
        #expect(lines.prefix(3) == ["GetNote begins", "GetNote is done", "GetNote begins"])
        #expect(lines.last?.hasPrefix("failed: GET https://") == true)
    }

    @Test("S36: a token is refreshed through another service, by a retrier and for all calls at once")
    func refreshByRetrier() async throws {
        let accounts = ScriptedTransport([.respond(200, body: #"{"token": "new"}"#)])
        let session = Page.Session(accounts: client(AnyHttpService(at: "accounts.example.com"), accounts))
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "Authorization") == "Bearer new"
                ? .respond(200, body: Self.note) : .respond(401)
        }
        let client = client(Page.PrivateApi(session: session), transport)
        for _ in 0..<2 { #expect(try await GetNote(id: 7).schedule(with: client).id == 7) }
        #expect(accounts.sent.count == 1)
        #expect(transport.sent.map { $0.field("Authorization") } == ["Bearer old", "Bearer new", "Bearer new"])
    }

    @Test("S36: twenty concurrent calls renew a token that can be renewed only once, and all succeed")
    func refreshOnce() async throws {
        let accounts = ScriptedTransport([
            .respond(200, body: #"{"token": "new"}"#).delayed(by: .milliseconds(50)), .respond(403),
        ])
        let session = Page.Session(
            accounts: ServiceClient(AnyHttpService(at: "accounts.example.com"), transport: accounts)
        )
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "Authorization") == "Bearer new"
                ? .respond(200, body: Self.note) : .respond(401)
        }
        // By the true clock: on one that jumps, calls that wait for each other would all be too late.
        let client = ServiceClient(Page.PrivateApi(session: session), transport: transport)
        try await withThrowingTaskGroup(of: Int?.self) { group in
            for id in 1...20 { group.addTask { try await GetNote(id: id).schedule(with: client).id } }
            for try await id in group { #expect(id == 7) }
        }
        #expect(accounts.sent.count == 1)
    }

    @Test("S36: the same by the pipeline's configuration")
    func refreshByConfiguration() async throws {
        let accountsTransport = ScriptedTransport([.respond(200, body: #"{"token": "new"}"#)])
        let accounts = client(AnyHttpService(at: "accounts.example.com"), accountsTransport)
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "Authorization") == "Bearer new"
                ? .respond(200, body: Self.note) : .respond(401)
        }
        typealias RenewToken = Page.RenewToken

        var service = AnyHttpService(at: "api.example.com/v1")
        service.pipelineConfiguration.authorization = .bearer(token: "old", for: ["https://api.example.com"]) { _ in
            try await RenewToken().schedule(with: accounts).token
        }
        let client = ServiceClient(service, transport: transport)
        for _ in 0..<2 { #expect(try await GetNote(id: 7).schedule(with: client).id == 7) }
        #expect(accountsTransport.sent.count == 1)
        #expect(transport.sent.count == 3)
    }

    @Test("Errors of your own")
    func errors() async throws {
        let client = client(Page.MappedApi(), ScriptedTransport([.respond(404)]))
        let printed = Printed()
        let print = printed.print

        do {
            _ = try await GetNote(id: 9).schedule(with: client)
        } catch .noSuchNote {
            print("deleted meanwhile")
        } catch {
            print(error)
        }
        #expect(printed.lines.withLock { $0 } == ["deleted meanwhile"])
    }
}
