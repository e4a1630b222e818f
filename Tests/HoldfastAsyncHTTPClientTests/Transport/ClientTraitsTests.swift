// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import Testing

    @testable import HoldfastAsyncHTTPClient

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("What is known of a client beneath a pipeline")
    struct ClientTraitsTests {
        private func request(_ fields: [String: String] = [:]) throws -> URLRequest {
            var request = URLRequest(url: try #require(URL(string: "http://localhost/")))
            for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
            return request
        }

        @Test("whether it decodes is read off the client itself")
        func detection() async throws {
            let plain = HTTPClient(configuration: HTTPClient.Configuration())
            #expect(ClientTraits(of: plain).undoesCodings == false)
            try await plain.shutdown()
            #expect(ClientTraits(of: .shared).undoesCodings == true)
        }

        @Test("Accept-Encoding is told of where it is added, and asks for no coding of parts (RFC 9110 §14.2)")
        func implicitFields() throws {
            let decoding = AsyncHTTPClientTransport(client: .shared)
            let plain = AsyncHTTPClientTransport(client: .shared, undoesContentCoding: false)
            #expect(decoding.implicitFields(for: try request())["Accept-Encoding"] == "deflate, gzip")
            #expect(decoding.implicitFields(for: try request(["Range": "bytes=0-1"]))["Accept-Encoding"] == "identity")
            #expect(decoding.implicitFields(for: try request(["Accept-Encoding": "br"])).isEmpty)
            #expect(plain.implicitFields(for: try request()).isEmpty)
            #expect(plain.implicitFields(for: try request(["Range": "bytes=0-1"])).isEmpty)
        }

        @Test(
            "one coding that the client knows is undone, and others are not",
            arguments: [
                ("gzip", ClientTraits.Coding.undone), ("Deflate", .undone), ("br", .kept), ("x-gzip", .kept),
                ("identity", .kept), ("", .kept), ("gzip, br", .uncertain), ("br, gzip", .kept),
            ]
        )
        func coding(_ value: String, _ expected: ClientTraits.Coding) {
            #expect(ClientTraits(undoesCodings: true).coding(of: ["Content-Encoding": value]) == expected)
            #expect(ClientTraits(undoesCodings: false).coding(of: ["Content-Encoding": value]) == .kept)
        }

        @Test("of a client that cannot be looked into, a coded response is uncertain")
        func unknown() {
            #expect(ClientTraits(undoesCodings: nil).coding(of: ["Content-Encoding": "gzip"]) == .uncertain)
            #expect(ClientTraits(undoesCodings: nil).coding(of: ["Content-Encoding": "br"]) == .kept)
        }
    }
#endif
