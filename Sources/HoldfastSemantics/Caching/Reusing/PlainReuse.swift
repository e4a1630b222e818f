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

/// The request fields that bear on whether a stored response may answer, whatever its Vary nominates: directives, conditions, ranges,
/// credentials, and the host.
package enum ReuseFields {
    /// Whether a field of this name does; letter case aside. One pass over the name, no allocation.
    package static func contains(_ name: String) -> Bool {
        switch name.utf8.count {
        case 4: isOne(of: ["host"], name)
        case 5: isOne(of: ["range"], name)
        case 6: isOne(of: ["cookie", "pragma"], name)
        case 8: isOne(of: ["if-match", "if-range"], name)
        case 13: isOne(of: ["cache-control", "authorization", "if-none-match"], name)
        case 17: isOne(of: ["if-modified-since"], name)
        case 19: isOne(of: ["if-unmodified-since"], name)
        default: false
        }
    }

    @inline(__always)
    private static func isOne(of names: [StaticString], _ name: String) -> Bool {
        names.contains { name.isSameFieldName(as: $0) }
    }
}

extension String {
    /// Whether this is a name in lower case, letter case aside (RFC 9110 §5.1).
    package func isSameFieldName(as lowercased: StaticString) -> Bool {
        guard utf8.count == lowercased.utf8CodeUnitCount else { return false }
        var known = lowercased.utf8Start
        for byte in utf8 {
            if byte.lowerCased != known.pointee { return false }
            known += 1
        }
        return true
    }

    /// Whether this is a name in lower case, letter case aside (RFC 9110 §5.1).
    package func isSameFieldName(as lowercased: String) -> Bool {
        utf8.count == lowercased.utf8.count && zip(utf8, lowercased.utf8).allSatisfy { $0.lowerCased == $1 }
    }
}
