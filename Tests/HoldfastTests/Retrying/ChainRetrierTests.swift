// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("ChainRetrier", .timeLimit(.minutes(20)))
struct ChainRetrierTests {
    /// A retrier that answers by a closure.
    private struct Asked: Retrier {
        var allowsMultipleRetries = true
        let answer: @Sendable (FailedAttempt) -> RetryDecision

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            answer(attempt)
        }
    }

    private func factory(
        once: Bool = false,
        made: CountWatch = CountWatch(),
        _ answer: @escaping @Sendable (FailedAttempt) -> RetryDecision
    ) -> AnyRetrierFactory {
        AnyRetrierFactory { _ in
            made.increment()
            return Asked(allowsMultipleRetries: !once, answer: answer)
        }
    }

    private func send(_ steps: [Int], _ factory: any RetrierFactory) async throws -> (Response, ScriptedTransport) {
        let transport = ScriptedTransport(steps.map { .respond($0) })
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        return (try await pipeline.send(.get()), transport)
    }

    @Test("Squid #25: a retrier for 401 and one for 503 work together, and neither uses up the other's retry")
    func combined() async throws {
        let refresh = factory(once: true) { $0.response?.status == .unauthorized ? .retryNow : .stop(.notRetryable) }
        let backoff = factory { $0.response?.status == .serviceUnavailable ? .retryNow : .stop(.notRetryable) }
        let (response, transport) = try await send([503, 503, 401, 503, 200], .chain(refresh, backoff))
        #expect(response.status == .ok)
        #expect(transport.sent.count == 5)
    }

    @Test("Rules for a call are for a chain if they are for any of its members")
    func ruled() {
        let plain = factory { _ in .stop(.notRetryable) }
        #expect(ChainRetrier.Factory(factories: [plain]).create(for: .get(), rules: .never) == nil)
        for factories in [[.default], [plain, .default]] as [[any RetrierFactory]] {
            #expect(ChainRetrier.Factory(factories: factories).create(for: .get(), rules: .never) != nil)
        }
    }

    @Test("A member that allows one retry is asked until it has granted one, and then no more")
    func spentMember() async throws {
        let refresh = factory(once: true) { $0.response?.status == .unauthorized ? .retryNow : .stop(.notRetryable) }
        let (response, transport) = try await send([401, 401, 200], .chain(refresh))
        #expect(response.status == .unauthorized)
        #expect(transport.sent.count == 2)
        #expect(response.attempts.last?.stopReason == .attemptsExhausted)
    }

    @Test("The first that says retry wins, with its own wait; later members are not even made")
    func firstWins() async throws {
        let made = CountWatch()
        let first = factory { _ in .retry(after: .seconds(3)) }
        let second = factory(made: made) { _ in .retry(after: .seconds(5)) }
        let (response, _) = try await send([503, 200], .chain(first, second))
        #expect(response.attempts.first?.delay == .seconds(3))
        #expect(made.count == 0)
    }

    @Test("If none retries, the last one's reason counts; each member is made once for a call")
    func lastReason() async throws {
        let made = CountWatch()
        let first = factory(made: made) { $0.number == 1 ? .retryNow : .stop(.notIdempotent) }
        let second = factory(made: made) { _ in .stop(.serverForbids) }
        let (response, _) = try await send([503, 503], .chain(first, second))
        #expect(response.attempts.last?.stopReason == .serverForbids)
        #expect(made.count == 2)
    }

    @Test("An empty chain declines")
    func empty() async throws {
        let (response, _) = try await send([503], ChainRetrier.factory([]))
        #expect(response.attempts.last?.stopReason == .retrierDeclined)
    }

    @Test("The chain is governed by the first member that has a governor")
    func governor() {
        let (first, second) = (BackoffRetrier.Factory.backoff(), BackoffRetrier.Factory.backoff(.strict))
        let chain = ChainRetrier.factory([NilRetrier.Factory(), first, second])
        #expect(chain.governor != nil)
        #expect(chain.governor === first.governor)
        #expect(ChainRetrier.factory([NilRetrier.Factory()]).governor == nil)
    }
}
