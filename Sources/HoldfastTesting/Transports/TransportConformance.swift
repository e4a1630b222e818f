// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The promises of `Transport` as checks that any transport can be held to, against a real server.
///
/// Needs no test framework: a check gives findings, and none means that the transport passes. With Swift Testing:
///
/// ```swift
/// @Test(arguments: TransportConformance.checks)
/// func check(_ check: TransportConformance.Check) async {
///     let findings = await check.findings(of: myTransport, at: .http1)
///     #expect(findings.isEmpty, "\(findings)")
/// }
/// ```
///
/// What transports may do differently is declared in ``TransportCapabilities``, and each check holds the transport to what it
/// declares. A check that does not apply gives no findings. Nothing is timed; a check that does not end within its patience
/// says so.
public enum TransportConformance {
    /// One broken promise.
    public struct Finding: Sendable, Hashable, CustomStringConvertible {
        /// The check's name.
        public let check: String
        /// What was seen, and what should have been.
        public let message: String

        public var description: String { "\(check): \(message)" }
    }

    /// One check, which can be run by itself.
    public struct Check: Sendable, CustomStringConvertible {
        /// What the check asks for, in a sentence; unique.
        public let name: String
        /// The versions of HTTP in which it means something.
        public let versions: Set<OriginFactory.Version>
        let body: @Sendable (TransportRun) async throws -> Void

        init(
            _ name: String,
            versions: Set<OriginFactory.Version> = [.http1, .http2],
            _ body: @escaping @Sendable (TransportRun) async throws -> Void
        ) {
            self.name = name
            self.versions = versions
            self.body = body
        }

        public var description: String { name }

        /// What the transport breaks; empty when it passes.
        ///
        /// - Parameters:
        ///   - subject: the transport.
        ///   - factory: makes the servers, one or more for each check.
        ///   - longBody: the length of the long bodies, in bytes; at least 64 MiB for limits of memory to show. 200 MB by
        ///     default.
        ///   - patience: how long the check may take; five minutes by default.
        public func findings(
            of subject: TransportSubject,
            at factory: OriginFactory,
            longBody: Int = 200_000_000,
            patience: Duration = .seconds(300)
        ) async -> [Finding] {
            guard versions.contains(factory.version) else { return [] }
            let run = TransportRun(check: name, subject: subject, factory: factory, longBody: longBody)
            await run.run(body, within: patience)
            return run.findings
        }
    }

    /// Every check.
    public static let checks: [Check] =
        requestChecks + requestBodyChecks + responseChecks + unfollowedChecks + codingChecks + longBodyChecks
        + cancellationChecks + failureChecks + brokenBodyChecks + refusalChecks + connectionChecks

    /// The findings of all checks, one after another.
    ///
    /// - Parameters:
    ///   - subject: the transport.
    ///   - factory: makes the servers.
    public static func findings(of subject: TransportSubject, at factory: OriginFactory) async -> [Finding] {
        var findings: [Finding] = []
        for check in checks { findings += await check.findings(of: subject, at: factory) }
        return findings
    }
}
