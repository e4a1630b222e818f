// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is requested, where it is stored, how it is requested, and by how many threads at the same time.
struct HitCase: Sendable, Equatable {
    /// Where the responses are stored.
    enum Tier: String, Sendable, CaseIterable {
        case memory, disk
    }

    /// What a call has that a plain one does not, or among how many resources it chooses.
    enum Kind: String, Sendable, CaseIterable {
        /// A hit of one of a few resources.
        case plain
        /// With Authorization, as most clients of an API send it; the response is the principal's own.
        case authorized
        /// With a Cookie, which the public response answers too.
        case cookies
        /// With a Cache-Control, as from a caller that wants nothing older than an hour.
        case directives
        /// Behind an asynchronous hook that looks at the request and at the response.
        case hooked
        /// Behind a hook that sets Authorization.
        case edited
        /// As most programs call: with Authorization, below an asynchronous hook, with a retrier and a deadline.
        case usual
        /// With a `cachePolicy` for which the cache decides in full each time.
        case fullDecision = "full-decision"
        /// One of 50,000 resources, each equally often.
        case uniform50k = "uniform-50k"
        /// One of a million resources, each equally often.
        case uniform1M = "uniform-1M"

        /// The number of resources, if it is not that of the plan.
        var entries: Int? {
            switch self {
            case .uniform50k: 50_000
            case .uniform1M: 1_000_000
            default: nil
            }
        }
    }

    let tier: Tier
    let length: Int
    let kind: Kind
    /// Whether the call is `data(for:)`; otherwise it is `send`, collecting the whole body.
    let asksData: Bool
    let threads: Int

    /// `memory-1KiB`, `disk-16KiB-data`, `memory-1KiB@2`, `memory-1KiB-authorized-data`.
    var name: String {
        "\(tier.rawValue)-\(length >> 10)KiB" + (kind == .plain ? "" : "-\(kind.rawValue)") + (asksData ? "-data" : "")
            + (threads == 1 ? "" : "@\(threads)")
    }

    /// Whether a quick run leaves it out: filling takes a minute.
    var isLong: Bool { kind == .uniform1M }

    static let lengths = [1 << 10, 16 << 10]

    /// All cases, in the order of the tables.
    static let all: [HitCase] = Tier.allCases.flatMap { tier in lengths.flatMap { cases(tier, $0) } }

    private static func cases(_ tier: Tier, _ length: Int) -> [HitCase] {
        // What is judged depends neither on the tier, nor on the body, nor on other threads.
        let kinds = tier == .memory && length == lengths[0] ? Kind.allCases : [.plain]
        return kinds.flatMap { kind in
            (kind == .plain ? [1, 2] : [1]).flatMap { threads in
                [false, true].map { asksData in
                    HitCase(tier: tier, length: length, kind: kind, asksData: asksData, threads: threads)
                }
            }
        }
    }
}
