// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOSSL
    import Testing

    @Suite("OriginTransport passes the transport conformance suite", .timeLimit(.minutes(20)))
    struct OriginConformanceTests {
        /// Long enough for limits of memory to show; bodies of 2 GB go through the proxy's own tests.
        private static let longBody = 64 << 20

        @Test("Over TCP", arguments: TransportConformance.checks)
        func plain(_ check: TransportConformance.Check) async {
            let findings = await check.findings(of: .origin, at: .http1, longBody: Self.longBody)
            #expect(findings.isEmpty, "\(findings)")
        }

        @Test("Over TLS", arguments: TransportConformance.checks)
        func secure(_ check: TransportConformance.Check) async {
            let findings = await check.findings(of: .originOverTLS, at: .https1, longBody: Self.longBody)
            #expect(findings.isEmpty, "\(findings)")
        }
    }

    extension TransportSubject {
        /// A transport as it is by default; it can do all there is.
        static let origin = TransportSubject("OriginTransport()", capabilities: TransportCapabilities()) {
            OriginTransport()
        } close: { transport in
            await (transport as? OriginTransport)?.shutdown()
        }

        /// A transport that trusts the servers of these tests.
        static let originOverTLS = TransportSubject("OriginTransport(tls:)", capabilities: TransportCapabilities()) {
            OriginTransport(configuration: try .trustingLoopback())
        } close: { transport in
            await (transport as? OriginTransport)?.shutdown()
        }
    }

    extension OriginTransport.Configuration {
        /// A configuration that trusts the servers of these tests.
        static func trustingLoopback() throws -> Self {
            var configuration = Self()
            configuration.tls = try LoopbackCertificate.trustingConfiguration()
            return configuration
        }
    }
#endif
