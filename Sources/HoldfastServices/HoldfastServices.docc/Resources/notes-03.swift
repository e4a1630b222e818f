// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices

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
