// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Something that happened to a call, for logs, metrics and tests.
///
/// A flat record: ``name`` says what happened, and the fields that belong to it are set. New names and fields may be added.
public struct ServiceEvent: Sendable {
    /// What happened.
    public let name: Name
    /// The call it happened to.
    public let callID: CallID
    /// When.
    public let timestamp: Timestamp
    /// The attempt it belongs to, if any; the first is 1.
    public var attempt: Int?
    /// The status of a response.
    public var status: StatusCode?
    /// The source of the response a call ended with.
    public var source: ResponseSource?
    /// A wait, or how long a call or attempt took.
    public var delay: Duration?
    /// Bytes of a body: of one that has ended, of one that was resumed, or of one that was there as a whole with its head, of which
    /// no end is told.
    public var bytes: Int?
    /// The error something ended with. Its text may hold anything; a log takes its code.
    public var error: (any Error)?
    /// What the call asks for, of the hop that is being made: set on every event of a pipeline.
    public var subject: CallSubject?
    /// Whether nobody waits for what happened: it belongs to a revalidation in the background.
    public var isBackground = false
    /// What a failed attempt proved.
    public var retryClass: RetryClass?
    /// Why no further attempt follows.
    public var stopReason: StopReason?
    /// How long a server asked to be left alone.
    public var retryAfter: Duration?
    /// How far an exchange came that failed.
    public var progress: TransportProgress?
    /// Whether the connection of an exchange that failed had carried one before, as far as the transport says.
    public var connectionReused: Bool?
    /// What a cache decided.
    public var cacheDecision: CacheDecision?
    /// The call whose exchange answered this one.
    public var leader: CallID?
    /// Why a response was not stored.
    public var notStoredReason: CacheReason?
    /// Where a redirect leads.
    public var redirectTarget: RedactedURL?
    /// A short explanation, free of credentials.
    public var detail: String?

    /// The method, the URL and the operation name of ``subject``.
    public var method: RequestMethod? { subject?.method }
    public var url: RedactedURL? { subject?.url }
    public var operationName: String? { subject?.operationName }

    /// The code of ``error``: `cancelled`, that of a ``ServiceError``, or `other`; nil without one. A short word of a closed set,
    /// fit for a metric label.
    public var errorCode: String? {
        error.map { $0.isCancellation ? "cancelled" : (($0 as? ServiceError)?.code ?? .other).description }
    }

    /// An event; set the fields that belong to it afterwards.
    public init(_ name: Name, callID: CallID, timestamp: Timestamp) {
        self.name = name
        self.callID = callID
        self.timestamp = timestamp
    }
}

/// Identifies a call within its process.
public struct CallID: Sendable, Hashable, CustomStringConvertible {
    /// The number; calls are numbered as they come.
    public let number: UInt64

    /// The call with this number.
    public init(number: UInt64) {
        self.number = number
    }

    public var description: String { "call-\(number)" }
}

/// Is told what happens to calls; must be quick, must not block, and is called from many tasks at once.
public protocol EventObserver: Sendable {
    /// Takes note of an event.
    func observe(_ event: ServiceEvent)
}
