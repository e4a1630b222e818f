// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// What came of a ``Pipeline/prefetch(_:options:concurrency:)``, request by request.
public struct PrefetchReport: Sendable {
    /// What came of one request; closed.
    public enum Outcome: Sendable {
        /// The response is in the store: newly fetched, or confirmed by the origin.
        case stored
        /// The store answered without waiting for the origin: nothing had to be fetched, or nothing could be and what is stored
        /// may stand in.
        case alreadyStored
        /// A response came and is not stored, for this reason.
        case notStored(CacheReason)
        /// No response came, or its body broke off; `CancellationError` where the prefetch was cancelled.
        case failed(any Error)
    }

    /// One request and what came of it.
    public struct Item: Sendable {
        /// The request as it was handed in.
        public let request: URLRequest
        /// What came of it.
        public let outcome: Outcome
    }

    /// All requests, in the order they were handed in.
    public let items: [Item]

    /// How many responses were stored or confirmed.
    public var storedCount: Int {
        items.count { if case .stored = $0.outcome { true } else { false } }
    }

    /// How many requests the store answers by now, newly or as before.
    public var availableCount: Int {
        items.count {
            switch $0.outcome {
            case .stored, .alreadyStored: true
            case .notStored, .failed: false
            }
        }
    }

    /// The requests that failed, to be tried again.
    public var failedRequests: [URLRequest] {
        items.compactMap { if case .failed = $0.outcome { $0.request } else { nil } }
    }
}
