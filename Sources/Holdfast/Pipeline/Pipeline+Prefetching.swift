// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
internal import HoldfastStorage
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
    /// Each request is an ordinary call: it passes through the hooks, is retried, is collapsed with equal calls, and is
    /// answered from the store if what is stored is fresh. Bodies go to the store chunk by chunk and are not kept anywhere
    /// else; one for which the store had no room while others were being written is fetched once more, alone. A request whose
    /// method is not safe (RFC 9110 §9.2.1) is not sent.
    ///
    /// - Parameters:
    ///   - requests: what to fetch, started in this order.
    ///   - options: the options of each call, such as tags.
    ///   - concurrency: how many are fetched at once; 4 by default, at least 1.
    /// - Returns: the result of each request, in the same order. If the task is cancelled, so are the calls in progress; they
    ///   and those not yet begun count as failed with `CancellationError`.
    public func prefetch(
        _ requests: [URLRequest],
        options: CallOptions = CallOptions(),
        concurrency: Int = 4
    ) async -> PrefetchReport {
        var outcomes = [PrefetchReport.Outcome](repeating: .failed(CancellationError()), count: requests.count)
        var statuses = [StatusCode?](repeating: nil, count: requests.count)
        await withTaskGroup(of: (Int, PrefetchReport.Outcome, StatusCode?).self) { group in
            func begin(_ index: Int) {
                let request = requests[index]
                _ = group.addTaskUnlessCancelled {
                    var status: StatusCode?
                    let outcome = await fetch(request, options: options, status: &status)
                    return (index, outcome, status)
                }
            }
            let first = min(max(concurrency, 1), requests.count)
            for index in 0..<first { begin(index) }
            var next = first
            while let (index, outcome, status) = await group.next() {
                (outcomes[index], statuses[index]) = (outcome, status)
                guard next < requests.count else { continue }
                begin(next)
                next += 1
            }
        }
        // Several bodies at once may need more space than a store allows for uncommitted ones; each one alone fits.
        for index in requests.indices {
            guard concurrency > 1, case .notStored(let reason) = outcomes[index], reason.isForWantOfRoom,
                !Task.isCancelled
            else { continue }
            outcomes[index] = await fetch(requests[index], options: options, status: &statuses[index])
        }
        return PrefetchReport(
            items: requests.indices.map {
                PrefetchReport.Item(request: requests[$0], outcome: outcomes[$0], status: statuses[$0])
            }
        )
    }

    private func fetch(
        _ request: URLRequest,
        options: CallOptions,
        status: inout StatusCode?
    ) async -> PrefetchReport.Outcome {
        guard RequestMethod(request).isSafe else { return .notStored(.method) }
        let watch = StoringWatch()
        var options = options
        options.storing = watch
        do {
            let response = try await send(request, options: options)
            status = response.status
            guard let decision = response.cacheDecision else {
                response.body.discard()
                return .notStored(.noCache)
            }
            if decision.outcome == .hit || decision.outcome == .stale {
                response.body.discard()
                return .alreadyStored
            }
            if case .notStored(let reason) = decision.storage {
                response.body.discard()
                return .notStored(reason)
            }
            if decision.outcome == .unsatisfiable { return .notStored(decision.reason) }
            // A confirmed response is already in the store.
            if decision.storage == nil {
                response.body.discard()
                return .stored
            }
            for try await _ in response.body {}
            // The exchange of another call stores its response for that call.
            if decision.outcome == .collapsed { return .stored }
            switch watch.outcome {
            case .stored: return .stored
            case .notStored(let reason): return .notStored(reason)
            case .storing, nil: return .notStored(.incomplete)
            }
        } catch {
            return .failed(error)
        }
    }
}

extension CacheReason {
    /// Whether the store had no space at that moment.
    fileprivate var isForWantOfRoom: Bool { self == .storeFailure && detail == StoreError.Code.noSpace.description }
}

/// Learns whether a response was stored.
final class StoringWatch: Sendable {
    private let state = Mutex<CacheDecision.Storage?>(nil)

    /// The result; nil while it is unknown.
    var outcome: CacheDecision.Storage? { state.withLock { $0 } }

    /// - Parameter reason: why the response was not stored completely; nil if it was. The first call counts.
    func note(_ reason: CacheReason?) {
        state.withLock { $0 = $0 ?? reason.map { .notStored($0) } ?? .stored }
    }
}

/// The result of a ``Pipeline/prefetch(_:options:concurrency:)``, request by request.
public struct PrefetchReport: Sendable {
    /// The result of one request; closed.
    public enum Outcome: Sendable {
        /// The response is in the store: newly fetched, or confirmed by the origin.
        case stored
        /// The store answered without waiting for the origin: nothing had to be fetched, or the fetch failed and the stored
        /// response may be used instead.
        case alreadyStored
        /// A response arrived and was not stored, for this reason.
        case notStored(CacheReason)
        /// No response arrived, or its body broke off; `CancellationError` if the prefetch was cancelled.
        case failed(any Error)
    }

    /// One request and its result; prints as one line, without credentials.
    public struct Item: Sendable, CustomStringConvertible, CustomReflectable {
        /// The request as it was passed in.
        public let request: URLRequest
        /// The result of the request.
        public let outcome: Outcome
        /// The status of the response, whether it was stored or not; nil if there was none.
        public let status: StatusCode?

        /// Whether the store has a response that is not an error: a stored 404 answers the request, but is not what was to be
        /// fetched.
        public var isAvailable: Bool {
            switch outcome {
            case .stored, .alreadyStored: status.map { $0.rawValue < 400 } ?? false
            case .notStored, .failed: false
            }
        }

        /// Whether no response arrived, or one with a status of 400 or more.
        public var hasFailed: Bool {
            if case .failed = outcome { true } else { status.map { $0.rawValue >= 400 } ?? false }
        }

        /// One line: method, URL without credentials, status and result.
        public var description: String {
            let result =
                switch outcome {
                case .stored: "stored"
                case .alreadyStored: "already stored"
                case .notStored(let reason): "not stored: \(reason)"
                // It names the call itself.
                case .failed(let error): "failed: \((error as? ServiceError)?.message ?? "\(error)")"
                }
            return "\(CallSubject(request)): " + (status.map { "\($0.rawValue), " } ?? "") + result
        }

        /// What `dump` shows: the ``description``. The request may contain credentials.
        public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
    }

    /// All requests, in the order in which they were passed in.
    public let items: [Item]

    /// How many responses were stored or confirmed.
    public var storedCount: Int {
        items.count { if case .stored = $0.outcome { true } else { false } }
    }

    /// How many requests were stored, or answered from the store, with something other than an error. Later ones may have evicted
    /// earlier ones since, if all together exceed the capacity.
    public var availableCount: Int { items.count { $0.isAvailable } }

    /// The requests that failed, or were answered with a status of 400 or more.
    public var failedRequests: [URLRequest] { items.filter(\.hasFailed).map(\.request) }
}
