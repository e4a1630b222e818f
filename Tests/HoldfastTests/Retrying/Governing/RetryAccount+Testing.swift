// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

@testable import Holdfast

extension RetryAccount {
    /// What a retry is granted at its failure, by a budget that counts.
    func granted(_ cause: RetryCause = .transient, now: MonotonicInstant) -> RetryGrant? {
        let plan = plan(cause, after: .zero, rules: .default, traffic: .caller, now: now)
        guard case .granted(let grant) = plan else { return nil }
        return grant
    }

    /// Takes note of the end of a first attempt.
    func ended(succeeded: Bool, now: MonotonicInstant) {
        _ = attemptEnded(AttemptEnd(isFirst: true, succeeded: succeeded, traffic: .caller), now: now)
    }

    /// Closes the origin for a credential, as a 429 with Retry-After does.
    func close(asked: Duration, now: MonotonicInstant) {
        let place = GatePlace(resource: 1, credential: 2)
        _ = attemptEnded(
            AttemptEnd(
                isFirst: false,
                succeeded: true,
                traffic: .caller,
                notice: (GateNotice(.throttled, asked: asked), place, isProbe: false)
            ),
            now: now
        )
    }
}
