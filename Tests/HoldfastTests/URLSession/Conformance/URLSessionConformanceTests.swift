// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport keeps the promises of a transport", .timeLimit(.minutes(20)))
struct URLSessionConformanceTests {
    /// Long bodies are of 200 MB in `TransferTests`, where another process is measured; here 64 MiB show the same rules.
    private static let longBody = 64 << 20

    @Test("with a session of its own", arguments: TransportConformance.checks)
    func own(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: .urlSession, at: .http1, longBody: Self.longBody)
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("over somebody's session", arguments: TransportConformance.checks)
    func foreign(_ check: TransportConformance.Check) async {
        let findings = await check.findings(of: .urlSessionOfOthers, at: .http1, longBody: Self.longBody)
        #expect(findings.isEmpty, "\(findings)")
    }
}

extension TransportSubject {
    /// What `docs/urlsession.md` says of both platforms.
    private static let urlSessionCapabilities: TransportCapabilities = {
        var capabilities = TransportCapabilities()
        capabilities.readAhead = .spills(memory: URLSessionTransport.Limits().bodyInMemory)
        capabilities.requestStreaming = .collects
        capabilities.keepsRepeatedLines = false
        #if canImport(Darwin)
            // Apple's URLSession undoes these itself, and keeps interim responses to itself.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br"]
            capabilities.reportsInterim = false
        #else
            // libcurl does on Linux; a task has no metrics there, and content in a GET would be refused late.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br", "zstd"]
            capabilities.refusesUnknownContentCodings = true
            capabilities.reportsConnectionReuse = false
            capabilities.sendsContentInGET = false
        #endif
        return capabilities
    }()

    /// A transport with a session of its own.
    static let urlSession = TransportSubject("URLSessionTransport()", capabilities: urlSessionCapabilities) {
        URLSessionTransport()
    }

    /// A transport over a session that was made elsewhere.
    static let urlSessionOfOthers: TransportSubject = {
        var capabilities = urlSessionCapabilities
        #if !canImport(Darwin)
            // A task's delegate is told of redirects and challenges on Linux, and of nothing else.
            capabilities.readAhead = .whole
            capabilities.handsUpRedirectBodies = false
            capabilities.handsUpChallengeBodies = false
            capabilities.reportsInterim = false
        #endif
        return TransportSubject("URLSessionTransport(session:)", capabilities: capabilities) {
            URLSessionTransport(session: URLSession(configuration: .ephemeral))
        }
    }()
}
