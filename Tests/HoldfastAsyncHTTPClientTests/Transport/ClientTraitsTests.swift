// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastTesting
    import InMemoryTracing
    import NIOCore
    import NIOEmbedded
    import Testing
    import Tracing

    @testable import HoldfastAsyncHTTPClient

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("What the transport knows about its client")
    struct ClientTraitsTests {
        private func request(_ fields: [String: String] = [:]) throws -> URLRequest {
            var request = URLRequest(url: try #require(URL(string: "http://localhost/")))
            for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
            return request
        }

        @Test("Whether the client decompresses is read from the client itself")
        func detection() async throws {
            let plain = HTTPClient(configuration: HTTPClient.Configuration())
            #expect(ClientTraits(of: plain).undoesCodings == false)
            try await plain.shutdown()
            #expect(ClientTraits(of: .shared).undoesCodings == true)
        }

        @Test("An own client does not trace with the bootstrapped tracer, but with one that the configuration names")
        func tracer() async throws {
            let transport = AsyncHTTPClientTransport()
            #expect(transport.client.tracer == nil)
            try await transport.shutdown()
            var configuration = HTTPClient.Configuration()
            configuration.tracing.tracer = InMemoryTracer()
            configuration.removeDefaultTracer(NoOpTracer())
            #expect(configuration.tracing.tracer is InMemoryTracer)
            configuration.removeDefaultTracer(InMemoryTracer())
            #expect(configuration.tracing.tracer == nil)
        }

        @Test(
            "Accept-Encoding is reported where it is added, and requests for parts ask for no coding (RFC 9110 §14.2)"
        )
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
            "A single coding that the client knows is decoded, and others are not",
            arguments: [
                ("gzip", ClientTraits.Coding.undone), ("Deflate", .undone), ("br", .kept), ("x-gzip", .kept),
                ("identity", .kept), ("", .kept), ("gzip, br", .uncertain), ("br, gzip", .kept),
                ("identity, gzip", .kept), ("gzip, , identity", .undone),
            ]
        )
        func coding(_ value: String, _ expected: ClientTraits.Coding) {
            #expect(ClientTraits(undoesCodings: true).coding(of: ["Content-Encoding": value]) == expected)
            #expect(ClientTraits(undoesCodings: false).coding(of: ["Content-Encoding": value]) == .kept)
        }

        @Test("If the client cannot be inspected, whether a response was decoded is unknown")
        func unknown() {
            #expect(ClientTraits(undoesCodings: nil).coding(of: ["Content-Encoding": "gzip"]) == .uncertain)
            #expect(ClientTraits(undoesCodings: nil).coding(of: ["Content-Encoding": "br"]) == .kept)
        }

        @Test(
            "A stream is guarded at once: the client stops the process if a connection ends before its request is written"
        )
        func guardedAtOnce() throws {
            var configuration = HTTPClient.Configuration()
            configuration.refuseOddStatuses()
            let stream = EmbeddedChannel()
            let guarded = CountWatch()
            let initializer = try #require(configuration.http2StreamChannelDebugInitializer)
            initializer(stream).whenSuccess { guarded.increment() }
            #expect(guarded.count == 1)
            _ = try stream.finish()
        }
    }
#endif
