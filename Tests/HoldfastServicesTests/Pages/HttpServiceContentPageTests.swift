// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/services/http-service.md on pages, on bodies, and on requests made of values.
@Suite("The page on typed requests: pages and bodies", .timeLimit(.minutes(20)))
struct HttpServiceContentPageTests {
    struct Note: Codable, Sendable {
        var noteText: String
    }

    struct ListNotes: JsonRequest {
        typealias Result = PaginatedData<Note>
        var routes: HttpRoute { ["notes"] }
        var query: HttpQuery { ["order": "newest"] }
    }

    private struct ListTags: JsonRequest {
        typealias Result = [String]
        var routes: HttpRoute { ["tags"] }
    }

    private func client(_ transport: ScriptedTransport) -> ServiceClient<AnyHttpService> {
        ServiceClient(AnyHttpService(at: "api.example.com/v1"), transport: transport)
    }

    @Test("Pages by number")
    func numbered() async throws {
        let transport = ScriptedTransport([
            .respond(200, body: #"{"page": 1, "total_pages": 2, "data": [{"note_text": "a"}]}"#),
            .respond(200, body: #"{"page": 2, "total_pages": 2, "data": [{"note_text": "b"}]}"#),
            .respond(200, body: #"["new", "blue"]"#), .respond(200, body: "[]"),
        ])
        let client = client(transport)
        var printed: [[String]] = []
        func print(_ texts: [String]) { printed.append(texts) }

        for try await page in ListNotes().pages(.numbered(chunk: 50), with: client) {
            print(page.data.map(\.noteText))
        }

        for try await tags in ListTags().pages(.numbered(isLast: { tags, _ in tags.isEmpty }), with: client) {
            print(tags)
        }
        #expect(printed == [["a"], ["b"], ["new", "blue"], []])
        let queries = transport.sent.map { $0.request.url?.query() }
        #expect(queries.first == "chunk=50&order=newest&page=1")
        #expect(queries.last == "page=2")
    }

    @Test("Pages by link")
    func linked() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Link": "</v1/events?after=3>; rel=next"], body: "3"), .respond(200, body: "4"),
        ])
        let client = client(transport)
        var printed: [Int] = []
        func print(_ count: Int) { printed.append(count) }

        let events = AnyRequest(routes: ["events"])
        for try await page in events.pages(.links, with: client) {
            print(page.count)
        }
        #expect(printed == [1, 1])
        #expect(transport.sent.last?.request.url?.absoluteString == "https://api.example.com/v1/events?after=3")
    }

    @Test("Bodies, and a request made of values")
    func bodies() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "beach-\(UUID().uuidString).jpg")
        try Data([4, 5]).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let transport = ScriptedTransport([.respond(204)], repeatsLastStep: true)
        let client = client(transport)
        let (note, photo) = (Note(noteText: "new"), Data([1, 2, 3]))

        let json = HttpBody.json(note)
        let form = HttpBody.formURLEncoded(["name": "hat", "tag": "new"])
        let image = HttpBody.image(photo, format: .png)
        let parts = HttpBody.multipart([
            .field("title", value: "Holiday"),
            .data("preview", bytes: photo, fileName: "beach.png", contentType: "image/png"),
            .file("photo", at: file, contentType: "image/jpeg"),
        ])

        let upload = AnyRequest(.post, routes: ["things"], body: parts)
        _ = try await upload.schedule(with: client)
        for body in [json, form, image] {
            _ = try await AnyRequest(.post, routes: ["things"], body: body).schedule(with: client)
        }
        let types = transport.sent.map { sent in
            sent.request.value(forHTTPHeaderField: "Content-Type")?.prefix { $0 != ";" }
        }
        #expect(types == ["multipart/form-data", "application/json", "application/x-www-form-urlencoded", "image/png"])
    }
}
