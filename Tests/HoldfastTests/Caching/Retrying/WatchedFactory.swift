// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes backoff retriers by seed, and notes whom they were made for and how often they were asked.
final class WatchedFactory: RetrierFactory {
    /// One question to a retrier.
    struct Question: Sendable, Equatable {
        var method: String
        var path: String
        var attempt: Int
    }

    /// How many retriers were made.
    let made = CountWatch()
    private let base: BackoffRetrier.Factory
    private let asked = Mutex<[Question]>([])

    /// - Parameter change: what differs from the default rules. There is no budget by default, since single calls earn none.
    init(_ change: (inout RetryRules) -> Void = { _ in }) {
        base = .seeded(change)
    }

    var questions: [Question] { asked.withLock { $0 } }
    var governor: RetryGovernor? { base.governor }

    func create(for request: URLRequest) -> any Retrier {
        made.increment()
        return WatchedRetrier(base: base.create(for: request), factory: self)
    }

    private struct WatchedRetrier: Retrier {
        let base: any Retrier
        let factory: WatchedFactory
        var allowsMultipleRetries: Bool { base.allowsMultipleRetries }

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            let question = Question(
                method: request.httpMethod ?? "",
                path: request.url?.path ?? "",
                attempt: attempt.number
            )
            factory.asked.withLock { $0.append(question) }
            return await base.retry(request, after: attempt, context: context)
        }
    }
}

extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// Backoff with a fixed seed and, unless `change` says otherwise, without a budget.
    static func seeded(_ change: (inout RetryRules) -> Void = { _ in }) -> BackoffRetrier.Factory {
        var rules = RetryRules(maxAttempts: 3)
        rules.budget = .unlimited
        change(&rules)
        return BackoffRetrier.factory(strategy: .exponential(rules), makeGenerator: { SeededGenerator(seed: 36) })
    }
}

extension RetryRules {
    /// Makes all waits between attempts equal.
    mutating func waits(_ wait: Duration) {
        backoff = Backoff(base: wait, multiplier: 1, cap: wait, jitter: .none)
        throttlingBackoff = backoff
    }
}

/// What `CallContext.isBackground` was, or is, in each attempt.
final class AttemptWatch: Sendable {
    private let contexts = Mutex<[CallContext]>([])
    private let noted = Mutex<[Bool]>([])

    /// A step that takes note of each attempt.
    var step: PrepareStep {
        { [self] _, context in
            contexts.withLock { $0.append(context) }
            noted.withLock { $0.append(context.isBackground) }
        }
    }

    /// What it was when each attempt began.
    var wereBackground: [Bool] { noted.withLock { $0 } }
    /// What it is now for each attempt.
    var areBackground: [Bool] { contexts.withLock { $0.map(\.isBackground) } }
}
