// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A stored response that answers plain requests for as long as it is fresh, with what that depends on worked out once.
///
/// A plain request is a GET without a field that ``ReuseFields`` names, sent without a directive of the caller's. For such a request
/// ``ReuseJudgement`` says "fresh" exactly while ``standing(now:)`` does, and looks at nothing else of the response.
package struct PlainReuse: Sendable, Hashable {
    private let responseTime: Timestamp
    private let initialAge: Int64
    private let lifetime: Int64
    private let fixed: Int64?

    /// Nil where even a plain request is not answered without asking the origin: the response must be confirmed, says `no-cache`,
    /// or lacks a part of its content.
    package init?(_ stored: StoredResponse, options: CacheOptions) {
        guard stored.confirmationReason == nil, stored.ranges == nil, stored.method == .get,
            options.fixedLifetime != nil || stored.cacheControl.noCache != .unqualified
        else { return nil }
        responseTime = stored.responseTime
        initialAge = stored.initialAgeMilliseconds
        lifetime = stored.freshnessLifetime(options).seconds
        fixed = options.fixedMilliseconds
    }

    /// How the response stands against its lifetime; as ``StoredResponse/standing(now:options:)``.
    package func standing(now: Timestamp) -> FreshnessStanding {
        let resident = max(0, responseTime.millisecondsUntil(now))
        if let fixed { return FreshnessStanding(age: resident / 1000, lifetime: lifetime, isStale: resident > fixed) }
        let (sum, overflow) = initialAge.addingReportingOverflow(resident)
        let age = (overflow ? .max : sum) / 1000
        return FreshnessStanding(age: age, lifetime: lifetime, isStale: lifetime <= age)
    }
}
