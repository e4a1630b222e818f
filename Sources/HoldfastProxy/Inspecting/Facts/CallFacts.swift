// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// The calls that ended lately, as JSON tells them.
    struct CallListFacts: Encodable, Sendable {
        /// The newest first.
        let calls: [CallFacts]
        /// The number of the newest call there is.
        let newest: UInt64
    }

    /// One call.
    struct CallFacts: Encodable, Sendable {
        /// A failed attempt and what followed.
        struct Attempt: Encodable, Sendable {
            let number: Int
            let status: Int?
            let error: String?
            let delay: Double?
            let word: String?
        }

        let number: UInt64
        let at: Int64
        let method: String
        let url: String
        let operation: String?
        let decision: DecisionFacts?
        let source: String?
        let status: Int?
        let error: String?
        let milliseconds: Double?
        let attempts: [Attempt]
        /// How many attempts the answer took, where it came over the network.
        let sends: Int?

        init(_ call: NotedCall) {
            number = call.number
            at = call.endedAt.millisecondsSinceEpoch
            method = String((call.subject?.method.rawValue ?? "").prefix(32))
            url = call.subject?.url?.description ?? ""
            operation = call.subject?.operationName.map { String($0.prefix(128)) }
            decision = call.decision.map { DecisionFacts($0, at: nil) }
            source = call.source.map { CallFacts.word(for: $0) }
            status = call.status?.rawValue
            error = call.errorCode
            milliseconds = call.duration?.milliseconds
            attempts = call.attempts.map { attempt in
                Attempt(
                    number: attempt.number,
                    status: attempt.status,
                    error: attempt.errorCode,
                    delay: attempt.delay?.milliseconds,
                    word: attempt.word
                )
            }
            if case .network(let attempts) = call.source { sends = attempts } else { sends = nil }
        }

        private static func word(for source: ResponseSource) -> String {
            switch source {
            case .network: "network"
            case .fresh: "fresh"
            case .stale: "stale"
            case .revalidated: "revalidated"
            case .collapsed: "collapsed"
            case .inProcess: "in-process"
            case .synthesized: "synthesized"
            }
        }
    }

    /// What a cache decided, and why.
    struct DecisionFacts: Encodable, Sendable {
        let outcome: String
        let reason: String
        let section: String
        /// `stored`, or why not; nil for a response from the store.
        let storage: String?
        let at: Int64?

        init(_ decision: CacheDecision, at time: Timestamp?) {
            outcome = "\(decision.outcome)"
            reason = decision.reason.code
            section = decision.reason.section
            storage =
                switch decision.storage {
                case .stored: "stored"
                case .notStored(let reason): "not stored: \(reason)"
                case nil: nil
                }
            at = time?.millisecondsSinceEpoch
        }
    }

    extension Duration {
        /// The length in milliseconds, with three digits behind the point.
        var milliseconds: Double {
            let (seconds, attoseconds) = components
            return (Double(seconds) * 1e6 + (Double(attoseconds) / 1e12).rounded()) / 1e3
        }

        /// The length in seconds, with three digits behind the point.
        var inSeconds: Double {
            let (seconds, attoseconds) = components
            return (Double(seconds) * 1e3 + (Double(attoseconds) / 1e15).rounded()) / 1e3
        }
    }
#endif
