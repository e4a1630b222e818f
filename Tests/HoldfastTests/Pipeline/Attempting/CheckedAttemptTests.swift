// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Undecodable content, if attempts are checked one by one", .timeLimit(.minutes(20)))
struct CheckedAttemptTests {
    private let clock = ManualClock(autoAdvances: true)

    /// A retrier that keeps what it was asked about.
    private final class Witness: Retrier {
        let seen = Mutex<[FailedAttempt]>([])
        let decision: RetryDecision
        var allowsMultipleRetries: Bool { true }

        init(_ decision: RetryDecision) {
            self.decision = decision
        }

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            seen.withLock { $0.append(attempt) }
            return decision
        }
    }

    /// Decodes numbers; says of each attempt whether it wants to be asked as the factory does.
    private static func decoding(_ checksAttempts: Bool, foreign: Bool = false) -> CallOptions {
        var options = CallOptions()
        var acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            guard Int(String(decoding: bytes.array, as: UTF8.self)) == nil else { return }
            if foreign { throw Refused(reason: "no number") }
            throw ServiceError(.decodingFailed, "The content is no number; ask for something else.")
        }
        acceptance.checksAttempts = checksAttempts
        options.acceptance = acceptance
        return options
    }

    private func pipeline(
        _ transport: any Transport,
        _ factory: any RetrierFactory,
        cache: HTTPCache? = nil,
        hooks: [any ServiceHook] = []
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return Pipeline(
            transport: transport,
            cache: cache,
            retrierFactory: factory,
            hooks: hooks,
            configuration: configuration
        )
    }

    private static func code(_ body: () async throws -> Response) async -> ServiceError.Code? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? ServiceError)?.code
        }
    }

    @Test("C3: a retrier sees a decoding failure only if the call's attempts are checked", arguments: [true, false])
    func seen(isChecked: Bool) async throws {
        let witness = Witness(.retryNow)
        let factory = AnyRetrierFactory(checksAttempts: isChecked) { _ in witness }
        let transport = ScriptedTransport([.respond(200, body: "x"), .respond(200, body: "7")])
        let pipeline = pipeline(transport, factory)
        let code = await Self.code {
            try await pipeline.send(.get(), options: Self.decoding(factory.checksAttempts))
        }
        #expect(code == (isChecked ? nil : .decodingFailed))
        #expect(transport.sent.count == (isChecked ? 2 : 1))
        let asked = witness.seen.withLock { $0 }
        #expect(asked.count == (isChecked ? 1 : 0))
        for attempt in asked {
            #expect((attempt.error as? ServiceError)?.code == .decodingFailed)
            guard case .failure(let failure) = attempt.outcome else {
                Issue.record("\(attempt.outcome)")
                continue
            }
            #expect(failure.kind == .protocolError)
        }
    }

    @Test(
        "The default rules retry it for idempotent methods, and if the call says that it is idempotent",
        arguments: [
            ("GET", nil, true), ("PUT", nil, true), ("DELETE", nil, true), ("OPTIONS", nil, true), ("POST", nil, false),
            ("PATCH", nil, false), ("POST", true, true), ("GET", false, false),
        ] as [(String, Bool?, Bool)]
    )
    func methods(method: String, isIdempotent: Bool?, isRetried: Bool) async throws {
        let factory = BackoffRetrier.factory(checksAttempts: true)
        let transport = ScriptedTransport([.respond(200, body: "x"), .respond(200, body: "7")])
        let pipeline = pipeline(transport, factory)
        var options = Self.decoding(factory.checksAttempts)
        options.isIdempotent = isIdempotent
        let code = await Self.code {
            try await pipeline.send(.request(method, "http://origin.example/a"), options: options)
        }
        #expect(code == (isRetried ? nil : .decodingFailed))
        #expect(transport.sent.count == (isRetried ? 2 : 1))
    }

    @Test(
        "Content that never decodes ends with the last failure and a record of each attempt; call hooks see one failure"
    )
    func exhausted() async throws {
        let log = HookLog()
        let factory = BackoffRetrier.factory(checksAttempts: true)
        let transport = ScriptedTransport([.respond(200, body: "x")], repeatsLastStep: true)
        let pipeline = pipeline(transport, factory, hooks: [RecordingHook(name: "call", log: log)])
        do {
            _ = try await pipeline.send(.get(), options: Self.decoding(true))
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .decodingFailed)
            #expect(error.attempts.map(\.errorCode) == Array(repeating: .decodingFailed, count: 4))
        }
        #expect(transport.sent.count == 4)
        #expect(log.entries == ["call.schedule", "call.failure"])
    }

    @Test("A refused status is not affected: the retrier is asked about the response as usual")
    func statuses() async throws {
        let witness = Witness(.stop(.retrierDeclined))
        let factory = AnyRetrierFactory(checksAttempts: true) { _ in witness }
        let pipeline = pipeline(ScriptedTransport([.respond(500, body: "x")]), factory)
        #expect(await Self.code { try await pipeline.send(.get(), options: Self.decoding(true)) } == .decodingFailed)
        #expect(witness.seen.withLock { $0.map(\.response?.status) } == [.internalServerError])
    }

    @Test("Only decodable content is stored, and each caller checks for itself")
    func stored() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let transport = ScriptedTransport([.respond(200, fields, body: "x"), .respond(200, fields, body: "7")])
        let pipeline = pipeline(transport, BackoffRetrier.factory(checksAttempts: true), cache: .inMemory())
        for _ in 0..<2 {
            let response = try await pipeline.send(.get(), options: Self.decoding(true))
            #expect(try await response.body.collect() == ByteChunk(copying: "7".utf8))
        }
        #expect(transport.sent.count == 2)
        #expect(pipeline.cache?.store.statistics.entryCount == 1)
    }

    @Test("No stale response replaces content that arrived and does not decode", arguments: [true, false])
    func staleStored(foreign: Bool) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let transport = ScriptedTransport([.respond(200, fields, body: "7"), .respond(200, fields, body: "x")])
        let pipeline = pipeline(transport, .never, cache: .inMemory())
        _ = try await pipeline.send(.get(), options: Self.decoding(true, foreign: foreign)).body.collect()
        clock.advance(by: .seconds(61))
        await #expect(throws: (any Error).self) {
            try await pipeline.send(.get(), options: Self.decoding(true, foreign: foreign))
        }
        #expect(transport.sent.count == 2)
    }

    @Test("A chain asks for it if any of its members does; factories do not by themselves")
    func factories() {
        let plain = AnyRetrierFactory { _ in NilRetrier() }
        let checking = AnyRetrierFactory(checksAttempts: true) { _ in NilRetrier() }
        #expect(ChainRetrier.factory([plain, checking]).checksAttempts)
        #expect(ChainRetrier.factory([checking, plain]).checksAttempts)
        #expect(ChainRetrier.factory([ChainRetrier.factory([checking])]).checksAttempts)
        #expect(!ChainRetrier.factory([plain, NilRetrier.Factory()]).checksAttempts)
        #expect(!ChainRetrier.factory([]).checksAttempts)
        #expect(!BackoffRetrier.Factory.default.checksAttempts)
        #expect(!BackoffRetrier.factory().checksAttempts)
        #expect(BackoffRetrier.factory(strategy: .exponentialBinary(), checksAttempts: true).checksAttempts)
    }
}
