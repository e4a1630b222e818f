// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// How it stands with one origin.
    struct OriginFacts: Encodable, Sendable {
        /// Its retries; as ``RetryStatus``.
        struct Retries: Encodable, Sendable {
            /// Nil: there is no budget.
            let balance: Int?
            let gateOpensIn: Double?
            let waiting: Int
            let learnedRate: Double?
            let calls: Int
            let failedAttempts: Int
            let retries: Int
            let hedges: Int
            let stops: [String: Int]

            init(_ status: RetryStatus, now: MonotonicInstant) {
                balance = status.balance == .max ? nil : status.balance
                gateOpensIn = status.gateOpens.map { max(0, now.duration(to: $0).inSeconds) }
                waiting = status.waiting
                learnedRate = status.learnedRate.flatMap { $0.isFinite ? $0 : nil }
                calls = status.counts.calls
                failedAttempts = status.counts.failedAttempts
                retries = status.counts.retries
                hedges = status.counts.hedges
                stops = Dictionary(status.counts.stops.map { ($0.key.rawValue, $0.value) }) { $0 &+ $1 }
            }
        }

        static let most = 65

        /// Nil: all that are not told apart.
        let origin: String?
        let requests: Int
        let hitRatio: Double
        let bytesSaved: Int
        let bytesFetched: Int
        let retries: Retries?
        /// How many seconds nothing is sent there; 0 once probes go through; nil where its circuit is not open.
        let circuitOpensIn: Double?

        init(_ statistics: OriginStatistics, retries: Retries?, circuitOpensIn: Double?) {
            origin = statistics.origin.map { String($0.prefix(512)) }
            requests = statistics.statistics.requests
            hitRatio = statistics.statistics.hitRatio
            bytesSaved = statistics.statistics.bytesSaved
            bytesFetched = statistics.statistics.networkBytes
            self.retries = retries
            self.circuitOpensIn = circuitOpensIn
        }

        /// The origins that the cache tells apart, those with the most requests first.
        static func all(_ model: InspectorModel, governor: RetryGovernor?, now: MonotonicInstant) -> [OriginFacts] {
            let circuits = model.openCircuits
            return model.cache.originStatistics.prefix(most).compactMap { each in
                if each.origin == nil, each.statistics.requests == 0 { return nil }
                let url = each.origin.flatMap { URL(string: $0) }
                let status = url.flatMap { governor?.status(of: $0, now: now) }
                return OriginFacts(
                    each,
                    retries: status.map { Retries($0, now: now) },
                    circuitOpensIn: each.origin.flatMap { circuits[$0] }.map { max(0, now.duration(to: $0).inSeconds) }
                )
            }
        }
    }
#endif
