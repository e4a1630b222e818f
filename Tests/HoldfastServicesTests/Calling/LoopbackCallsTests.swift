// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

private struct Note: Codable, Sendable, Equatable {
    var id: Int?
    var noteText: String
}

private struct GetNote: JsonRequest {
    typealias Result = Note
    let id: Int
    var routes: HttpRoute { ["notes", id] }
}

private struct PostNote: JsonRequest {
    typealias Result = Note
    let note: Note
    var method: HttpMethod { .post }
    var routes: HttpRoute { ["notes"] }
    var body: HttpBody {
        get throws {
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            return .data(try encoder.encode(note), contentType: "application/json")
        }
    }
}

private enum NotesError: Error, Equatable {
    case unknownNote, cancelled, other
}

/// A service with one hook, a cache and a retrier, as an application would have it.
private struct NotesService: HttpService {
    let port: UInt16
    let log: CallFixtures.Log
    var apiUrl: any UrlConvertible { "127.0.0.1:\(port)/v1" }
    var usesSecureProtocol: Bool { false }
    var header: HttpHeader { ["X-Client": "tests"] }
    var authorization: Authorization { .bearer("token") }
    var cache: HTTPCache? { .default }
    var retrierFactory: any RetrierFactory { .default }
    var requestHooks: [any RequestHook] { [CallFixtures.NotingHook(name: "a", log: log)] }
    func process(_ error: any Error) { log.note("process(\(CallFixtures.word(error)))") }
    func mapError(_ error: any Error) -> NotesError {
        if error is CancellationError { return .cancelled }
        return (error as? ServiceError)?.response?.status == .notFound ? .unknownNote : .other
    }
}

@Suite("Typed calls over real sockets", .timeLimit(.minutes(20)))
struct LoopbackCallsTests {
    private let log = CallFixtures.Log()

    private func client(_ server: LoopbackServer) -> ServiceClient<NotesService> {
        ServiceClient(NotesService(port: server.port, log: log))
    }

    @Test("S-T11, S-T14, S-T27: a 503 is retried, the response decoded, and the second call answered from the cache")
    func retriedAndCached() async throws {
        let count = Mutex(0)
        let server = try LoopbackServer.start { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { return LoopbackReply(503) }
            return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: #"{"id": 7, "note_text": "hello"}"#)
        }
        defer { server.stop() }
        let client = client(server)
        let first = try await client.response(to: GetNote(id: 7))
        #expect(first.value == Note(id: 7, noteText: "hello"))
        #expect(first.response.source == .network(attempts: 2))
        #expect(try await GetNote(id: 7).schedule(with: client) == first.value)
        #expect(server.requests.count == 2)
        let request = try #require(server.requests.last)
        #expect(request.target == "/v1/notes/7")
        #expect(request.values(of: "Authorization") == ["Bearer token"])
        #expect(request.values(of: "X-Client") == ["tests"])
        #expect(log.entries.count { $0 == "a.schedule" } == 2)
        #expect(log.entries.last?.hasSuffix("fresh)") == true)
    }

    @Test("A POST sends its content with its type and its length")
    func post() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(
                201,
                body: #"{"id": 8, "note_text": "\#(request.text.contains("note_text") ? "kept" : "lost")"}"#
            )
        }
        defer { server.stop() }
        let made = try await PostNote(note: Note(noteText: "new")).schedule(with: client(server))
        #expect(made == Note(id: 8, noteText: "kept"))
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.text == #"{"note_text":"new"}"#)
        #expect(request.values(of: "Content-Type") == ["application/json"])
        #expect(request.values(of: "Content-Length") == ["19"])
    }

    @Test("S-T39: the caller gets the service's own error, and process gets the original one")
    func mapped() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(404) }
        defer { server.stop() }
        let client = client(server)
        await #expect(throws: NotesError.unknownNote) { try await GetNote(id: 9).schedule(with: client) }
        #expect(log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)"])
    }

    @Test("S-T24: a call that is cancelled in progress ends at once, together with its connection")
    func cancelled() async throws {
        let server = try LoopbackServer.start { _ in .never }
        defer { server.stop() }
        let client = client(server)
        let call = Task { try await GetNote(id: 1).schedule(with: client) }
        _ = try await server.requests(atLeast: 1)
        call.cancel()
        await #expect(throws: NotesError.cancelled) { try await call.value }
        let ends = try await server.connectionEnds(atLeast: 1)
        #expect(ends.first?.endedBy == .peer)
        #expect(log.entries == ["a.schedule", "a.cancel"])
    }

    @Test("Truncated content is a failure, reported once")
    func broken() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(100), steps: [.send(#"{"id": "#), .close])
        }
        defer { server.stop() }
        let client = client(server)
        await #expect(throws: NotesError.other) { try await GetNote(id: 1).schedule(with: client) }
        #expect(log.entries.first == "a.schedule")
        #expect(log.entries.count == 3)
    }

    @Test("Pages arrive over one connection, one after the other")
    func pages() async throws {
        let server = try LoopbackServer.start { request in
            let page = request.target.hasSuffix("page=2") ? 2 : 1
            return LoopbackReply(body: #"{"page": \#(page), "total_pages": 2, "data": ["\#(page)"]}"#)
        }
        defer { server.stop() }
        struct Titles: JsonRequest {
            typealias Result = PaginatedData<String>
            var routes: HttpRoute { ["titles"] }
        }
        var titles: [String] = []
        for try await page in Titles().pages(.numbered(chunk: 10), with: client(server)) { titles += page.data }
        #expect(titles == ["1", "2"])
        #expect(server.requests.map(\.target) == ["/v1/titles?chunk=10&page=1", "/v1/titles?chunk=10&page=2"])
        #expect(server.connectionCount == 1)
    }
}
