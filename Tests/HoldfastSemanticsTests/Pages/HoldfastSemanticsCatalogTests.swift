// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

/// The code of `HoldfastSemantics.docc`: articles, and the steps from first to last.
@Suite("Catalog: HoldfastSemantics", .timeLimit(.minutes(20)))
struct HoldfastSemanticsCatalogTests {
    private let now = Timestamp(secondsSinceEpoch: 1_700_000_000)

    @Test("Reuse decisions")
    func reuse() throws {
        let target = try TargetURI("https://example.com/a")
        let response = ResponseHead(status: .ok, fields: ["Cache-Control": "max-age=60"])
        let (sent, received) = (now, now)
        let verdict = Storability.decide(
            request: RequestHead(target: target),
            response: response,
            directive: .default,
            options: .shared
        )
        if case .doNotStore(let reason) = verdict { print(reason) }
        #expect(verdict == .store(scope: .shared))
        let stored = StoredResponse(target: target, head: response, requestTime: sent, responseTime: received)
        let lifetime = stored.freshnessLifetime(.private)
        print(lifetime.seconds, lifetime.source, stored.currentAge(now: now))
        #expect(lifetime.seconds == 60)
        let decision = ReuseDecision.decide(
            request: RequestHead(target: target),
            candidates: [stored],
            directive: .default,
            now: now,
            options: .private,
            secret: []
        )
        #expect(decision == .reuse(candidate: 0, age: 0, isStale: false))
    }

    @Test("Retry decisions")
    func retries() {
        let lost = AttemptFailure(kind: .connectionLost, progress: .bodySent)
        let outcome = AttemptOutcome.failure(lost)
        let order = FailedExchange(outcome, method: .post, receivedAt: now)
        let query = FailedExchange(outcome, method: .get, receivedAt: now)
        print(RetryRules.default.classify(order), RetryRules.default.classify(query))
        #expect(RetryRules.default.classify(query) == .ambiguous)
        #expect(RetryRules.default.classify(order) != .ambiguous)
        var history = RetryHistory()
        var generator = SystemRandomNumberGenerator()
        switch RetryRules.default.decide(query, history: &history, using: &generator) {
        case .retry(let delay): print("once more, after", delay)
        case .stop(let reason): print("no more:", reason)
        }
        #expect(history.transientRetries == 1)
        var rules = RetryRules.default
        rules.maxAttempts = 0
        do throws(RetryRulesError) {
            try rules.validate()
        } catch {
            print(error)
        }
    }

    func received(at time: Timestamp) throws -> StoredResponse {
        let fields: HeaderFields = [
            .cacheControl: "max-age=60, stale-while-revalidate=30",
            .eTag: "\"v1\"",
        ]
        return StoredResponse(
            target: try TargetURI("https://example.com/forecast"),
            head: ResponseHead(status: .ok, fields: fields),
            requestTime: time,
            responseTime: time
        )
    }

    func decision(on stored: StoredResponse, after seconds: Int) -> ReuseDecision {
        ReuseDecision.decide(
            request: RequestHead(target: stored.target),
            candidates: [stored],
            directive: .default,
            now: stored.responseTime + .seconds(seconds),
            options: .private,
            secret: []
        )
    }

    func question(about stored: StoredResponse) -> RequestHead {
        RequestHead(target: stored.target, fields: Validation.conditionalFields(for: [stored]))
    }

    func confirmed(_ stored: StoredResponse, after seconds: Int) -> StoredResponse {
        let time = stored.responseTime + .seconds(seconds)
        let notModified = ResponseHead(status: .notModified, fields: [.cacheControl: "max-age=60"])
        return stored.freshened(by: notModified, requestTime: time, responseTime: time, mode: .private)
    }

    @Test("The life of a response")
    func life() throws {
        let stored = try received(at: now)
        #expect(decision(on: stored, after: 59) == .reuse(candidate: 0, age: 59, isStale: false))
        #expect(decision(on: stored, after: 80) == .reuseWhileRevalidating(candidates: [0], age: 80))
        #expect(decision(on: stored, after: 91) == .revalidate(candidates: [0]))
        #expect(question(about: stored).fields[.ifNoneMatch] == "\"v1\"")
        let again = confirmed(stored, after: 91)
        #expect(again.isFresh(now: now + .seconds(150), options: .private))
    }
}
