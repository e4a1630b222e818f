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

/// What was sent in a call's last attempt, and when.
public struct SentExchange: Sendable {
    /// The request as it went to the transport, after every `prepare` step.
    public let request: URLRequest
    /// The request's fields together with the transport's implicit ones; computed on each read if the transport adds none.
    public var presentedFields: HeaderFields { presented.fields }
    var presented: PresentedFields { together.map { .fields($0) } ?? .own(request) }
    /// The fields that the retry rules set to tell the server about this attempt: they say nothing about who asks or for what.
    var announcedFields: [FieldName] { announced ?? [] }
    private let announced: [FieldName]?
    /// The transport's fields together with the request's own, if the transport adds any.
    private let together: HeaderFields?
    /// When the request was passed to the transport.
    public let requestTime: Timestamp
    /// When the response head arrived; nil if there was none.
    public internal(set) var responseTime: Timestamp?
    /// Its place in the order of all requests: later requests of this process have a later one, whatever the clock says.
    let order: HybridTimestamp

    init(
        request: URLRequest,
        presented: PresentedFields,
        requestTime: Timestamp,
        announced: [FieldName]? = nil
    ) {
        self.request = request
        self.requestTime = requestTime
        order = RequestOrder.next(at: requestTime)
        self.announced = announced
        together = if case .fields(let fields) = presented { fields } else { nil }
    }
}

/// The hybrid logical clock that orders the requests of this process.
///
/// One for the process, since a request may pass several caches.
enum RequestOrder {
    private static let last = Atomic<UInt64>(0)

    /// The latest instant issued or observed.
    static var latest: HybridTimestamp { instant(last.load(ordering: .acquiring)) }

    /// The instant of a request that is sent at `now`: later than all issued or observed ones.
    static func next(at now: Timestamp) -> HybridTimestamp {
        var known = last.load(ordering: .relaxed)
        while true {
            let next = instant(known).next(at: now)
            let (exchanged, found) = last.weakCompareExchange(
                expected: known,
                desired: next.rawValue,
                ordering: .acquiringAndReleasing
            )
            if exchanged { return next }
            known = found
        }
    }

    /// Makes all later instants later than one that was found in a store: another process, or this one before its clock was set
    /// back, may have written it.
    static func observe(_ instant: HybridTimestamp) {
        last.max(instant.rawValue, ordering: .acquiringAndReleasing)
    }

    private static func instant(_ rawValue: UInt64) -> HybridTimestamp {
        // Only raw values of instants are ever stored.
        HybridTimestamp(rawValue: rawValue) ?? HybridTimestamp(.distantFuture)
    }
}

/// One attempt of a call, for explanations.
public struct AttemptRecord: Sendable, Hashable, CustomStringConvertible {
    /// Its number; the first is 1.
    public let number: Int
    /// When it began and ended.
    public let start: MonotonicInstant
    public let end: MonotonicInstant
    /// The status it got, if a response came.
    public let status: StatusCode?
    /// The code of the error it ended with, if none came.
    public let errorCode: ServiceError.Code?
    /// How far the exchange got, if it ended with an error; nil if the transport did not say.
    public var progress: TransportProgress?
    /// What the failure proved, by the rules of the call or the default ones; nil if the attempt did not fail.
    public var retryClass: RetryClass?
    /// The wait that the retrier chose before the next attempt; nil after the last.
    ///
    /// Waits for the budget, a gate and the learned rate come on top (`budget-awaited`, `gate-awaited`, `pace-awaited`): all of
    /// it lasts from ``end`` to the ``start`` of the next record.
    public var delay: Duration?
    /// How long the server asked clients to wait; nil if it did not.
    public var retryAfter: Duration?
    /// Why no attempt followed; nil if one did, or if no further one was needed.
    public var stopReason: StopReason?
    /// What was sent below for this attempt: hedges, or the attempts of a pipeline that is this one's transport.
    public var nestedAttempts: [AttemptRecord] = []

    init(
        number: Int,
        start: MonotonicInstant,
        end: MonotonicInstant,
        status: StatusCode? = nil,
        errorCode: ServiceError.Code? = nil,
        progress: TransportProgress? = nil,
        nestedAttempts: [AttemptRecord] = []
    ) {
        self.number = number
        self.start = start
        self.end = end
        self.status = status
        self.errorCode = errorCode
        self.progress = progress
        self.nestedAttempts = nestedAttempts
    }

    /// One line: the number, the status or the code of the error, how long it took, and what followed.
    public var description: String {
        let result = status.map { "\($0.rawValue)" } ?? errorCode?.description ?? "no response"
        let next =
            stopReason.map { ", then none: \($0)" } ?? delay.map { ", the next after \($0)" } ?? ""
        return "attempt \(number): \(result) in \(start.duration(to: end))\(next)"
    }
}
