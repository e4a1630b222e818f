// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSimulation
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What docs/measuring/measuring-retries.md calls a retrier of your own: two more sends, after a wait drawn from the seed.
///
/// The imports of this file are those of docs/first-steps.md.
struct MyRetrierFactory: RetrierFactory {
    private struct PatientRetrier: Retrier {
        let allowsMultipleRetries = true
        let wait: Duration

        func retry(
            _ request: URLRequest,
            after attempt: FailedAttempt,
            context: CallContext
        ) async -> RetryDecision {
            attempt.number > 2 ? .stop(.attemptsExhausted) : .retry(after: wait)
        }
    }

    private let wait: Duration

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        wait = .milliseconds(Int.random(in: 50...500, using: &generator))
    }

    func create(for request: URLRequest) -> any Retrier { PatientRetrier(wait: wait) }
}
