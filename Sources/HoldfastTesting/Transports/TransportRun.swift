// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One run of one check: makes servers and transports, and gathers findings.
final class TransportRun: Sendable {
    /// A server may have got rid of this much beyond what a transport declares: it lies in the sockets of both sides.
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

    /// Runs `body` to its end, or until the patience is over.
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
        // A transport that hangs may not end either, and then nobody waits for it.
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

    /// Starts a server; it is stopped with the run.
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

    /// Adds a finding; after twenty of them no more.
    func report(_ message: String) {
        let finding = TransportConformance.Finding(check: check, message: "\(subject), \(factory): \(message)")
        found.withLock { if $0.count < 20 { $0.append(finding) } }
    }

    /// Adds a finding unless `holds`.
    func check(_ holds: Bool, _ message: @autoclosure () -> String) {
        if !holds { report(message()) }
    }

    /// Adds a finding unless both values are equal.
    func equal<Value: Equatable>(_ value: Value, _ expected: Value, _ what: @autoclosure () -> String) {
        if value != expected { report("\(what()): \(brief(value)), not \(brief(expected))") }
    }

    /// The ``ServiceError`` that `body` throws; nil, with a finding, when it throws none or another error.
    func failure(_ what: String, _ body: () async throws -> String) async -> ServiceError? {
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

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.continuation = Mutex(continuation)
    }

    func answer(_ answer: Bool) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: answer)
    }
}
