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

/// The steps from a URL to a typed call; each file begins with the one before it, so the last one has them all.
@Suite("From a URL to a typed call", .timeLimit(.minutes(20)))
struct FromAURLToATypedCallTests {
    struct NotesAPI: HttpService {
        var apiUrl: any UrlConvertible { "notes.example/v1" }
    }

    struct Note: Codable, Sendable, Equatable {
        let id: Int
        let noteText: String
    }

    struct GetNote: JsonRequest {
        typealias Result = Note
        let id: Int
        var routes: HttpRoute { ["notes", id] }
    }

    struct Notes: Sendable {
        let client = ServiceClient(NotesAPI(), cache: .default, retrierFactory: .default)

        func note(_ id: Int) async throws -> Note {
            try await GetNote(id: id).schedule(with: client)
        }
    }

    @Test("The client has a cache; a call that is cancelled before it begins sends nothing")
    func client() async throws {
        let notes = Notes()
        #expect(notes.client.pipeline.cache != nil)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await notes.note(7)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("A note is decoded")
    func note() async throws {
        let mock = ServiceMock()
        mock.expect(.get, path: "/v1/notes/7", respond: .content(#"{"id": 7, "note_text": "milk"}"#))
        let client = ServiceClient(NotesAPI(), transport: mock)
        let note = try await GetNote(id: 7).schedule(with: client)
        #expect(note == Note(id: 7, noteText: "milk"))
        try mock.verify()
    }
}
