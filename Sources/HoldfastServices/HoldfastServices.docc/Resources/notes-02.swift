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
