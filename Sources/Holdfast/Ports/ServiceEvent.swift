// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Something that happened to a call, for logs, metrics and tests.
///
/// A flat record: ``name`` says what happened, and the fields that belong to it are set. New names and fields may be added.
public struct ServiceEvent: Sendable {
    /// What happened.
    public struct Name: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, fit for a metric label.
        public let description: String

        /// A name of one's own, for events of hooks and transports outside this package.
        public init(_ description: String) {
            self.description = description
        }

        /// A call came in.
        public static let callStarted = Name("call-started")
        /// A call ended with a response or an error.
        public static let callEnded = Name("call-ended")
        /// An attempt is about to be sent.
        public static let attemptStarted = Name("attempt-started")
        /// An attempt got a response head or an error.
        public static let attemptEnded = Name("attempt-ended")
        /// Another attempt will follow after ``ServiceEvent/delay``.
        public static let retryScheduled = Name("retry-scheduled")
        /// A further copy of an attempt is sent, since the first is late; ``ServiceEvent/delay`` says how late.
        public static let hedgeStarted = Name("hedge-started")
        /// A body that had broken off goes on after ``ServiceEvent/bytes``, ``ServiceEvent/delay`` after its last failure.
        public static let bodyResumed = Name("body-resumed")
        /// A circuit opened for ``ServiceEvent/delay``; ``ServiceEvent/detail`` is its origin.
        public static let circuitOpened = Name("circuit-opened")
        /// A circuit closed; ``ServiceEvent/detail`` is its origin.
        public static let circuitClosed = Name("circuit-closed")
        /// A server's word closed the gate of its partition for ``ServiceEvent/delay``.
        public static let gateClosed = Name("gate-closed")
        /// An attempt waits at a closed gate for ``ServiceEvent/delay``.
        public static let gateAwaited = Name("gate-awaited")
        /// A call waits for the machine to be online.
        public static let connectivityAwaited = Name("connectivity-awaited")
        /// A redirect is followed.
        public static let redirected = Name("redirected")
        /// A transport reported an interim (1xx) response.
        public static let interimResponse = Name("interim-response")
        /// The body of a network response was read to its end, failed, or was dropped.
        public static let bodyEnded = Name("body-ended")
        /// A cache decided what to do with a request; ``ServiceEvent/detail`` says what.
        public static let cacheDecided = Name("cache-decided")
        /// A response was stored.
        public static let responseStored = Name("response-stored")
        /// A response was not stored; ``ServiceEvent/detail`` says why.
        public static let responseNotStored = Name("response-not-stored")
        /// A store failed and was treated as a miss.
        public static let storeFailed = Name("store-failed")
    }

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
    /// Bytes of a body.
    public var bytes: Int?
    /// The error something ended with.
    public var error: (any Error)?
    /// A short explanation, free of credentials.
    public var detail: String?

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
