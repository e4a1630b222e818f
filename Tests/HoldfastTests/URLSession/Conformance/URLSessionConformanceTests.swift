// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport passes the transport conformance suite", .timeLimit(.minutes(20)))
struct URLSessionConformanceTests {
    /// Long bodies are of 200 MB in `TransferTests`, where another process is measured; here 64 MiB show the same rules.
    private static let longBody = 64 << 20

    @Test("With its own session", arguments: TransportConformance.checks)
    func own(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: .urlSession, at: .http1, longBody: Self.longBody)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("Over an existing session", arguments: TransportConformance.checks)
    func foreign(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: .urlSessionOfOthers, at: .http1, longBody: Self.longBody)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("Below a FaultInjectingTransport without faults", arguments: TransportConformance.checks)
    func faultless(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: .faultless, at: .http1, longBody: Self.longBody)
        #expect(findings.isEmpty, "\(findings)")
    }
}

extension TransportSubject {
    /// A transport with a session of its own.
    static let urlSession = TransportSubject("URLSessionTransport()", capabilities: .urlSession) {
        URLSessionTransport()
    }

    /// A transport over a session that was made elsewhere.
    static let urlSessionOfOthers = TransportSubject("URLSessionTransport(session:)", capabilities: .urlSession) {
        URLSessionTransport(session: URLSession(configuration: .ephemeral))
    }

    /// Faults that never come.
    static let faultless = TransportSubject("FaultInjectingTransport", capabilities: .urlSession) {
        FaultInjectingTransport(URLSessionTransport(), plan: .list([]))
    }
}
