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

/// The code of docs/mock-data.md, so that what stands there compiles and does what it says.
@Suite("The page on mock data", .timeLimit(.minutes(20)))
struct MockDataPageTests {
    private struct User: Decodable, Sendable {
        let userName: String
    }

    private struct UserRequest: JsonRequest {
        typealias Result = User
        let number: Int
        var routes: HttpRoute { ["users", number] }
    }

    private struct UserService: HttpService {
        var apiUrl: any UrlConvertible { "api.example.com" }
    }

    @Test("Mocks as values, and other requests passed on")
    func values() async throws {
        let mocks = MockDataProvider([
            try MockData(
                "https://api.example.com/users/7",
                fields: ["Content-Type": "application/json", "Cache-Control": "max-age=60"],
                content: .text(#"{"user_name":"seven"}"#)
            ),
            try MockData("https://api.example.com/users/8", status: 503),
        ])
        let client = ServiceClient(UserService(), transport: mocks, cache: .default)
        let user = try await UserRequest(number: 7).schedule(with: client)
        #expect(user.userName == "seven")
        await #expect(throws: ServiceError.self) { try await UserRequest(number: 8).schedule(with: client) }

        let network = ScriptedTransport([.respond(200, body: #"{"user_name":"nine"}"#)])
        let mixed = MockDataProvider(mocks.mocks, passesUnmatched: true, next: network)
        let passing = ServiceClient(UserService(), transport: mixed)
        #expect(try await UserRequest(number: 9).schedule(with: passing).userName == "nine")
    }

    @Test("The page's file of mocks")
    func file() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "mocks-\(UUID().uuidString).json")
        let json = #"""
            {
              "mocks": [
                {
                  "url": "https://api.example.com/users/7",
                  "method": "GET",
                  "requestFields": {"Accept": "application/json"},
                  "status": 200,
                  "fields": {"Cache-Control": "max-age=60"},
                  "json": {"user_name": "seven"}
                },
                {"url": "https://api.example.com/logo", "fields": {"Content-Type": "image/png"}, "bodyFile": "logo.png"}
              ]
            }
            """#
        try Data(json.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let mocks = try MockDataProvider(contentsOf: file)
        #expect(mocks.mocks.count == 2)
        var request = URLRequest(url: try #require(URL(string: "https://api.example.com/users/7")))
        #expect(mocks.mock(for: request) == nil)
        request.setValue("application/json", forHTTPHeaderField: "accept")
        let mock = try #require(mocks.mock(for: request))
        #expect(mock.fields["Content-Type"] == "application/json")
    }
}
