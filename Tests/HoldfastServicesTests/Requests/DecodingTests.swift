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

private struct Nothing: Request {
    typealias Result = Void
    var method: HttpMethod { .delete }
}

private struct Bytes: Request {
    typealias Result = Data
}

private struct Words: Request {
    typealias Result = String
}

private struct User: Codable, Sendable, Equatable {
    let firstName: String
}

private struct OneUser: JsonRequest {
    typealias Result = User
}

private struct PlainUser: JsonRequest {
    typealias Result = User
    var decoder: JSONDecoder { JSONDecoder() }
}

private struct PerhapsUser: JsonRequest {
    typealias Result = User?
}

@Suite("What responses are decoded to by default", .timeLimit(.minutes(20)))
struct DecodingTests {
    private func result<R: Request>(_ request: R, _ step: ScriptedTransport.Step) async throws -> R.Result {
        try await request.schedule(
            with: ServiceClient(AnyHttpService(at: "api.example.com"), transport: ScriptedTransport([step]))
        )
    }

    @Test("Void, Data and String take content as it is")
    func plain() async throws {
        try await result(Nothing(), .respond(204))
        try await result(Nothing(), .respond(200, body: "whatever"))
        #expect(try await result(Bytes(), .respond(200, body: "a")) == Data("a".utf8))
        #expect(try await result(Words(), .respond(200, body: "naïve")) == "naïve")
        #expect(try await result(Words(), .respond(200)) == "")
    }

    @Test("JSON keys are in snake_case unless the decoder says otherwise")
    func json() async throws {
        let expected = User(firstName: "A")
        #expect(try await result(OneUser(), .respond(200, body: #"{"first_name": "A"}"#)) == expected)
        #expect(try await result(PlainUser(), .respond(200, body: #"{"firstName": "A"}"#)) == expected)
    }

    @Test("Missing content is nil for an Optional and an error for anything else")
    func missing() async throws {
        #expect(try await result(PerhapsUser(), .respond(204)) == nil)
        #expect(try await result(PerhapsUser(), .respond(200, body: "null")) == nil)
        #expect(try await result(PerhapsUser(), .respond(200, body: #"{"first_name": "A"}"#)) == User(firstName: "A"))
        let error = await #expect(throws: ServiceError.self) { try await result(OneUser(), .respond(204)) }
        #expect(error?.code == .decodingFailed)
        #expect(error?.message.contains("has no content, so it cannot be decoded as User;") == true)
    }
}
