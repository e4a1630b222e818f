// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@Suite("The transport conformance suite finds broken transports", .timeLimit(.minutes(20)))
struct TransportConformanceTests {
    @Test("Each broken transport is found by the checks meant for it", arguments: TransportDefect.all)
    func defect(_ defect: TransportDefect) async throws {
        let subject = TransportSubject(defect.description, capabilities: defect.capabilities) { defect.make() }
        // Patience that is over too early on a slow machine is a finding as well, and one is expected.
        let patience = defect.hangs ? Duration.seconds(2) : .seconds(300)
        for name in defect.checks {
            let check = try #require(
                TransportConformance.checks.first { $0.name == name },
                "there is no check called \(name)"
            )
            let findings = await check.findings(of: subject, at: .http1, longBody: 64 << 20, patience: patience)
            #expect(!findings.isEmpty, "\(name)")
        }
    }

    @Test("Each check can fail")
    func coverage() {
        let found = Set(TransportDefect.all.flatMap(\.checks))
        let idle = TransportConformance.checks.map(\.name).filter { !found.contains($0) }
        #expect(idle.isEmpty)
    }

    @Test("Names of checks are unique")
    func names() {
        let names = TransportConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
    }

    @Test("A check that has no meaning in a version of HTTP is skipped")
    func versions() async throws {
        let subject = TransportSubject("none", capabilities: TransportCapabilities()) {
            throw CancellationError()
        }
        let http2 = OriginFactory("HTTP/2", version: .http2) { try LoopbackServer.start(script: $0) }
        for check in TransportConformance.checks where !check.versions.contains(.http2) {
            #expect(await check.findings(of: subject, at: http2).isEmpty)
            #expect(await check.findings(of: subject, at: .http1).count == 1)
        }
    }
}
