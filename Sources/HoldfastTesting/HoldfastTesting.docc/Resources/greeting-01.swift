// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

@Test("A greeting comes through two failures")
func greeting() async throws {
    let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200, body: "hello")])
    let client = Pipeline(transport: transport, retrierFactory: .default)

    let url = try #require(URL(string: "https://example.com/greeting"))
    let (data, _) = try await client.data(from: url)

    #expect(data == Data("hello".utf8))
    #expect(transport.sent.count == 3)
}
