// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOSSL
    import Testing

    @Suite("AsyncHTTPClientTransport passes the transport conformance suite", .timeLimit(.minutes(20)))
    struct AsyncHTTPClientConformanceTests {
        /// Long bodies are of 200 MB where another process is measured; here 64 MiB show the same rules.
        private static let longBody = 64 << 20

        @Test("Over HTTP/1.1, with a client of its own", arguments: TransportConformance.checks)
        func own(_ check: TransportConformance.Check) async {
            let findings = await check.findings(of: .asyncHTTPClient, at: .http1, longBody: Self.longBody)
            #expect(findings.isEmpty, "\(findings)")
        }

        @Test("Over HTTP/1.1, with a client passed in that decompresses", arguments: TransportConformance.checks)
        func foreign(_ check: TransportConformance.Check) async {
            let findings = await check.findings(of: .asyncHTTPClientOfOthers, at: .http1, longBody: Self.longBody)
            #expect(findings.isEmpty, "\(findings)")
        }

        @Test("Over HTTP/2", arguments: TransportConformance.checks)
        func http2(_ check: TransportConformance.Check) async {
            let findings = await check.findings(of: .asyncHTTPClientOverTLS, at: .http2, longBody: Self.longBody)
            #expect(findings.isEmpty, "\(findings)")
        }
    }

    extension TransportSubject {
        /// What `docs/clients/async-http-client.md` says.
        private static let capabilities: TransportCapabilities = {
            var capabilities = TransportCapabilities()
            capabilities.reportsInterim = false
            return capabilities
        }()

        /// A transport with a client of its own.
        static let asyncHTTPClient = TransportSubject("AsyncHTTPClientTransport()", capabilities: capabilities) {
            AsyncHTTPClientTransport()
        } close: { transport in
            try? await (transport as? AsyncHTTPClientTransport)?.shutdown()
        }

        /// A transport that trusts the servers of these tests, and speaks HTTP/2 with those that do.
        static let asyncHTTPClientOverTLS: TransportSubject = {
            var capabilities = TransportSubject.capabilities
            // Over HTTP/2 the client does not tell which connection it used.
            capabilities.reportsConnectionReuse = false
            return TransportSubject("AsyncHTTPClientTransport(configuration:)", capabilities: capabilities) {
                var configuration = HTTPClient.Configuration()
                configuration.tlsConfiguration = try LoopbackCertificate.trustingConfiguration()
                return AsyncHTTPClientTransport(configuration: configuration)
            } close: { transport in
                try? await (transport as? AsyncHTTPClientTransport)?.shutdown()
            }
        }()

        /// A transport over a client that was made elsewhere, and undoes content codings.
        static let asyncHTTPClientOfOthers: TransportSubject = {
            var capabilities = TransportSubject.capabilities
            capabilities.undoesContentCodings = ["gzip", "deflate"]
            var configuration = HTTPClient.Configuration.singletonConfiguration
            configuration.redirectConfiguration = .disallow
            // Or the client tries for 90 seconds before it says that nobody listens.
            configuration.connectionPool.retryConnectionEstablishment = false
            let client = HTTPClient(configuration: configuration)
            return TransportSubject("AsyncHTTPClientTransport(client:)", capabilities: capabilities) {
                AsyncHTTPClientTransport(client: client)
            }
        }()
    }
#endif
