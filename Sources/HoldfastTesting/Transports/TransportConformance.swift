// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The promises of `Transport` as checks that any transport can be tested against, with a real server.
///
/// Needs no test framework: a check returns findings, and none means that the transport passes. With Swift Testing:
///
/// ```swift
/// @Test(arguments: TransportConformance.checks)
/// func check(_ check: TransportConformance.Check) async {
///     let findings = await check.findings(of: myTransport, at: .http1)
///     #expect(findings.isEmpty, "\(findings)")
/// }
/// ```
///
/// Permitted differences between transports are declared in ``TransportCapabilities``, and each check tests a transport against its
/// declaration. A check that does not apply returns no findings. Nothing is timed; a check that does not end within its patience
/// reports that.
public enum TransportConformance {
    /// One broken promise.
    public struct Finding: Sendable, Hashable, CustomStringConvertible {
        /// The check's name.
        public let check: String
        /// What was observed, and what was expected.
        public let message: String

        public var description: String { "\(check): \(message)" }
    }

    /// One check, which can be run on its own.
    public struct Check: Sendable, CustomStringConvertible {
        /// What the check asks for, in a sentence; unique.
        public let name: String
        /// The versions of HTTP that it applies to.
        public let versions: Set<OriginFactory.Version>
        let body: @Sendable (TransportRun) async throws -> Void

        init(
            _ name: String,
            versions: Set<OriginFactory.Version> = [.http1, .http2],
            body: @escaping @Sendable (TransportRun) async throws -> Void
        ) {
            self.name = name
            self.versions = versions
            self.body = body
        }

        public var description: String { name }

        /// What the transport breaks; empty if it passes.
        ///
        /// - Parameters:
        ///   - subject: the transport.
        ///   - factory: makes the servers, one or more for each check.
        ///   - longBody: the length of the long bodies, in bytes; at least 64 MiB, so that memory limits show. 200 MB by default.
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

/// A transport that ``TransportConformance`` tests.
public struct TransportSubject: Sendable, CustomStringConvertible {
    /// The transport's name.
    public let description: String
    /// What it declares.
    public let capabilities: TransportCapabilities
    /// Makes a transport; tests run checks in parallel, each with its own.
    public let make: @Sendable () async throws -> any Transport
    /// Closes a transport after a check.
    public let close: @Sendable (any Transport) async -> Void

    /// A subject.
    ///
    /// - Parameters:
    ///   - description: the transport's name.
    ///   - capabilities: what it declares.
    ///   - make: makes a transport; returning a shared one is fine too.
    ///   - close: closes a transport; by default releasing it does.
    public init(
        _ description: String,
        capabilities: TransportCapabilities,
        make: @escaping @Sendable () async throws -> any Transport,
        close: @escaping @Sendable (any Transport) async -> Void = { _ in }
    ) {
        self.description = description
        self.capabilities = capabilities
        self.make = make
        self.close = close
    }
}

/// How ``TransportConformance`` makes its servers.
public struct OriginFactory: Sendable, CustomStringConvertible {
    /// A version of HTTP.
    public enum Version: Sendable, Hashable {
        /// HTTP/1.1 (RFC 9112): a broken exchange ends its connection.
        case http1
        /// HTTP/2 (RFC 9113): exchanges are streams of one connection.
        case http2
    }

    /// The servers' name.
    public let description: String
    /// The version that they speak.
    public let version: Version
    /// Starts a server with a script.
    public let start: @Sendable (_ script: LoopbackScript) async throws -> any LoopbackOrigin

    /// A factory.
    ///
    /// - Parameters:
    ///   - description: the servers' name.
    ///   - version: the version that they speak.
    ///   - start: starts a server with a script.
    public init(
        _ description: String,
        version: Version = .http1,
        start: @escaping @Sendable (_ script: LoopbackScript) async throws -> any LoopbackOrigin
    ) {
        self.description = description
        self.version = version
        self.start = start
    }

    /// ``LoopbackServer``: HTTP/1.1 without TLS on 127.0.0.1.
    public static let http1 = OriginFactory("HTTP/1.1") { try LoopbackServer.start(script: $0) }
}

/// One run of one check: makes servers and transports, and collects findings.
final class TransportRun: Sendable {
    /// A server may have sent this much more than a transport declares: it is in the sockets of both sides.
    static let socketBuffers = 16 << 20

    let longBody: Int
    let version: OriginFactory.Version
    private let check: String
    private let subject: TransportSubject
    private let factory: OriginFactory
    private let found = Mutex<[TransportConformance.Finding]>([])
    private let origins = Mutex<[any LoopbackOrigin]>([])
    private let transports = Mutex<[any Transport]>([])

    init(check: String, subject: TransportSubject, factory: OriginFactory, longBody: Int) {
        self.check = check
        self.subject = subject
        self.factory = factory
        self.longBody = longBody
        version = factory.version
    }

    var findings: [TransportConformance.Finding] { found.withLock { $0 } }
    var capabilities: TransportCapabilities { subject.capabilities }

    /// Runs `body` to its end, or until the patience is exhausted.
    func run(_ body: @escaping @Sendable (TransportRun) async throws -> Void, within patience: Duration) async {
        let work = Task {
            do {
                try await body(self)
            } catch {
                report("threw \(error)")
            }
        }
        let isOver = await ended(work, within: patience)
        if !isOver {
            report("did not end within \(patience)")
            work.cancel()
        }
        for origin in origins.withLock({ $0 }) { await origin.stop() }
        // A transport that hangs may not close either; then nothing waits for it.
        let transports = transports.withLock { $0 }
        let close = subject.close
        let closing = Task {
            for transport in transports { await close(transport) }
        }
        if isOver { await closing.value }
    }

    private func ended(_ work: Task<Void, Never>, within patience: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            let waiting = OneAnswer(continuation)
            let watch = Task {
                guard (try? await Task.sleep(for: patience)) != nil else { return }
                waiting.answer(false)
            }
            Task {
                await work.value
                waiting.answer(true)
                watch.cancel()
            }
        }
    }

    /// Starts a server; it stops with the run.
    func origin(
        opening: @escaping @Sendable (_ connection: Int) -> LoopbackOpening = { _ in .serve },
        intake: @escaping @Sendable (_ head: LoopbackRequest) -> LoopbackIntake = { _ in .keep },
        handler: @escaping @Sendable (_ request: LoopbackRequest) -> LoopbackReply
    ) async throws -> any LoopbackOrigin {
        let origin = try await factory.start(LoopbackScript(opening: opening, intake: intake, handler: handler))
        origins.withLock { $0.append(origin) }
        return origin
    }

    /// Makes a transport; it is closed with the run.
    func transport() async throws -> any Transport {
        let transport = try await subject.make()
        transports.withLock { $0.append(transport) }
        return transport
    }

    /// Adds a finding, up to twenty.
    func report(_ message: String) {
        let finding = TransportConformance.Finding(check: check, message: "\(subject), \(factory): \(message)")
        found.withLock { if $0.count < 20 { $0.append(finding) } }
    }

    /// Adds a finding if `holds` is false.
    func check(_ holds: Bool, or message: @autoclosure () -> String) { if !holds { report(message()) } }

    /// Adds a finding if the values differ.
    func equal<Value: Equatable>(_ value: Value, to expected: Value, for what: @autoclosure () -> String) {
        if value != expected { report("\(what()): \(brief(value)), not \(brief(expected))") }
    }

    /// The ``ServiceError`` that `body` throws; nil, with a finding, if it throws none or another error.
    func failure(_ what: String, of body: () async throws -> String) async -> ServiceError? {
        do {
            report("\(what) gave \(try await body()), not an error")
        } catch let error as ServiceError {
            return error
        } catch {
            report("\(what) threw \(error), not a ServiceError")
        }
        return nil
    }

    private func brief(_ value: some Any) -> String {
        let text = "\(value)"
        return text.count <= 200 ? "\u{201C}\(text)\u{201D}" : "\(text.prefix(200))…"
    }
}

/// Resumes one continuation, with the first of two answers.
private final class OneAnswer: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    func answer(_ answer: Bool) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: answer)
    }
}
