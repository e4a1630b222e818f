// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension Pipeline {
    /// Fetches responses into the cache before anyone asks for them.
    ///
    /// Each request is an ordinary call: through the hooks, with retries, collapsed with equal calls, and answered from the
    /// store where that is fresh. Bodies go to the store chunk by chunk and are held nowhere else. A request whose method is
    /// not safe (RFC 9110 §9.2.1) is not sent.
    ///
    /// - Parameters:
    ///   - requests: what to fetch; begun in this order.
    ///   - options: what is asked for each of the calls, tags for instance.
    ///   - concurrency: how many are fetched at once; 4 by default, at least 1.
    /// - Returns: what came of each request, in their order. When the task is cancelled the calls under way are, and they and those
    ///   not yet begun count as failed with `CancellationError`.
    public func prefetch(
        _ requests: [URLRequest],
        options: CallOptions = CallOptions(),
        concurrency: Int = 4
    ) async -> PrefetchReport {
        var outcomes = [PrefetchReport.Outcome](repeating: .failed(CancellationError()), count: requests.count)
        await withTaskGroup(of: (Int, PrefetchReport.Outcome).self) { group in
            func begin(_ index: Int) {
                let request = requests[index]
                _ = group.addTaskUnlessCancelled { (index, await fetch(request, options: options)) }
            }
            let first = min(max(concurrency, 1), requests.count)
            for index in 0..<first { begin(index) }
            var next = first
            while let (index, outcome) = await group.next() {
                outcomes[index] = outcome
                guard next < requests.count else { continue }
                begin(next)
                next += 1
            }
        }
        return PrefetchReport(
            items: zip(requests, outcomes).map { PrefetchReport.Item(request: $0, outcome: $1) }
        )
    }

    private func fetch(_ request: URLRequest, options: CallOptions) async -> PrefetchReport.Outcome {
        let method = request.httpMethod.flatMap { RequestMethod(validating: $0) } ?? .get
        guard method.isSafe else { return .notStored(.method) }
        let watch = StoringWatch()
        var options = options
        options.storing = watch
        do {
            let response = try await send(request, options: options)
            guard let decision = response.cacheDecision else {
                response.body.discard()
                return .notStored(.noCache)
            }
            if decision.outcome == .hit {
                response.body.discard()
                return .alreadyStored
            }
            if case .notStored(let reason) = decision.storage {
                response.body.discard()
                return .notStored(reason)
            }
            if decision.outcome == .unsatisfiable { return .notStored(decision.reason) }
            // A confirmed response lies in the store already.
            if decision.storage == nil {
                response.body.discard()
                return .stored
            }
            for try await _ in response.body {}
            // The exchange of another call does its storing for that one.
            if decision.outcome == .collapsed { return .stored }
            switch watch.outcome {
            case .stored: return .stored
            case .notStored(let reason): return .notStored(reason)
            case nil: return .notStored(.incomplete)
            }
        } catch {
            return .failed(error)
        }
    }
}

/// Is told what became of a response that was to be stored.
final class StoringWatch: Sendable {
    private let state = Mutex<CacheDecision.Storage?>(nil)

    /// What became of it; nil while that is open.
    var outcome: CacheDecision.Storage? { state.withLock { $0 } }

    /// - Parameter reason: why the response was not stored as a whole; nil where it was. What was noted first counts.
    func note(_ reason: CacheReason?) {
        state.withLock { $0 = $0 ?? reason.map { .notStored($0) } ?? .stored }
    }
}

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
