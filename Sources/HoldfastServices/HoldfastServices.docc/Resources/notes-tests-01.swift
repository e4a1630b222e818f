// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import Testing

@Test("A note is decoded")
func note() async throws {
    let mock = ServiceMock()
    mock.expect(.get, "/v1/notes/7", respond: .content(#"{"id": 7, "note_text": "milk"}"#))
    let client = ServiceClient(NotesAPI(), transport: mock)
    let note = try await GetNote(id: 7).schedule(with: client)
    #expect(note == Note(id: 7, noteText: "milk"))
    try mock.verify()
}
