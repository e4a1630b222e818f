// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryLogging
    import Logging
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A secret in URLs, fields and the texts of errors must stand in no record, no span and no label.
    @Suite(.timeLimit(.minutes(20))) struct RedactionFuzzTests {
        private static let marker = "s3cr3tMark"

        private struct Hostile: Error, CustomStringConvertible, LocalizedError {
            let description: String
            var errorDescription: String? { description }
        }

        private static let urls = [
            "https://user:\(marker)@example.com/", "https://\(marker)@example.com/a?key=\(marker)",
            "https://example.com/?\(marker)", "https://example.com/a;s=\(marker)/?a=b&c=\(marker)x#\(marker)",
            "https://example.com/?q=\(marker)%20\(marker)", "https://example.com/a?x=1&=\(marker)",
        ]

        private static let texts = [
            "cannot load https://user:\(marker)@example.com/?key=\(marker)#\(marker)",
            "Authorization: Bearer \(marker) \(marker) was refused", "Cookie:sid=\(marker); other=\(marker)",
            "sent Basic \(marker)", "token=\(marker)", "key=\(marker),\(marker)", "a\nb\rpassword: \(marker)",
            "eyJ\(marker).\(marker).\(marker)", "{\"url\":\"https://example.com/\(marker)\"}", "(\(marker))",
            "\(marker)",
            "X-API-Key: \(marker)", "q=\(marker)%20\(marker)", "ftp://\(marker):\(marker)@\(marker)/\(marker)",
        ]

        @Test("Random calls with a secret in them never log it")
        func fuzz() async throws {
            let seed: UInt64 = 0x5EC2_E701
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<120 {
                let url = Self.urls.randomElement(using: &generator) ?? ""
                // A bare secret can be told only where it is known from the URL.
                var text = Self.texts.randomElement(using: &generator) ?? ""
                let known =
                    url.contains("=\(Self.marker)") || url.contains("\(Self.marker)@")
                    || url.contains("?\(Self.marker)")
                if text == "(\(Self.marker))" || text == Self.marker, !known { text = "none" }
                let failures: [any Error] = [
                    ServiceError(.connectionLost, text, progress: .bodySent), Hostile(description: text),
                    URLError(
                        .cannotConnectToHost,
                        userInfo: [NSLocalizedDescriptionKey: text, "NSErrorFailingURL": url]
                    ),
                    ServiceError(.other, text, cause: Hostile(description: text)),
                ]
                let failure = failures.randomElement(using: &generator) ?? Hostile(description: text)
                let steps: [[ScriptedTransport.Step]] = [
                    [.fail(failure)],
                    [
                        .respond(302, ["Location": "https://\(Self.marker)@other.example/?k=\(Self.marker)"]),
                        .fail(failure),
                    ],
                    [.respond(503, ["Set-Cookie": "sid=\(Self.marker)"]), .respond()],
                    [.stream(chunks: ["a"], failure: failure)],
                    [.respond(401, ["WWW-Authenticate": "Bearer realm=\"\(Self.marker)\""])],
                ]
                var options = ObserverOptions()
                options.logsURLs = Bool.random(using: &generator)
                let bench = ObservedPipeline(
                    steps.randomElement(using: &generator) ?? [],
                    cache: Bool.random(using: &generator) ? .inMemory() : nil,
                    options: options
                )
                let fields = ["Authorization": "Bearer \(Self.marker)", "Cookie": "sid=\(Self.marker)"]
                _ = try? await bench.get(url, operation: "op", fields: fields)
                await bench.pipeline.drain()
                let everything = bench.everything
                #expect(!everything.isEmpty)
                #expect(!everything.contains(Self.marker), "seed \(seed): \(url) \(text) \(everything)")
                #expect(
                    !bench.logs.entries.contains { $0.metadata["error.message"]?.description.contains("\n") ?? false }
                )
            }
        }
    }
#endif
