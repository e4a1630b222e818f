// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

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

extension ServiceEvent {
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
        /// Another attempt will follow after ``ServiceEvent/delay``; class, status or error say why.
        public static let retryScheduled = Name("retry-scheduled")
        /// Another attempt will follow that no retrier was asked about, after ``ServiceEvent/delay``; ``ServiceEvent/detail`` is
        /// `credential`, `unconditional` or `online`.
        public static let resendScheduled = Name("resend-scheduled")
        /// An attempt failed and no other follows; ``ServiceEvent/stopReason`` says why.
        public static let retriesStopped = Name("retries-stopped")
        /// A further copy of an attempt is sent, since the first is late; ``ServiceEvent/delay`` says how late.
        public static let hedgeStarted = Name("hedge-started")
        /// A further copy of an attempt ended; status or error of the copy, `cancelled` where another one was faster, and in
        /// ``ServiceEvent/delay`` how long it took.
        public static let hedgeEnded = Name("hedge-ended")
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
        /// An attempt waits for its turn by the learned rate, for ``ServiceEvent/delay``.
        public static let paceAwaited = Name("pace-awaited")
        /// A retry waits for the budget, which is spent.
        public static let budgetAwaited = Name("budget-awaited")
        /// A call waits for the machine to be online.
        public static let connectivityAwaited = Name("connectivity-awaited")
        /// A redirect is followed, to ``ServiceEvent/redirectTarget``.
        public static let redirected = Name("redirected")
        /// A transport reported an interim (1xx) response.
        public static let interimResponse = Name("interim-response")
        /// The body of a network response was read to its end, failed, or was dropped.
        public static let bodyEnded = Name("body-ended")
        /// A cache decided what to do with a request; ``ServiceEvent/cacheDecision`` says what, ``ServiceEvent/detail`` in words.
        public static let cacheDecided = Name("cache-decided")
        /// A response was stored.
        public static let responseStored = Name("response-stored")
        /// A response was not stored; ``ServiceEvent/notStoredReason`` says why, ``ServiceEvent/detail`` in words.
        public static let responseNotStored = Name("response-not-stored")
        /// A revalidation that nobody waits for began, or a call's own exchange became one.
        public static let backgroundRevalidationStarted = Name("background-revalidation-started")
        /// A revalidation that nobody waited for failed, or brought nothing that could be stored.
        public static let backgroundRevalidationFailed = Name("background-revalidation-failed")
        /// An exchange has waited for ``ServiceEvent/delay`` while another process fetched the same; ``ServiceEvent/detail`` says what
        /// came of it: an outcome of a lease, or `overtime`.
        public static let fillAwaited = Name("fill-awaited")
        /// A store failed and was treated as a miss.
        public static let storeFailed = Name("store-failed")
    }
}

/// What a call asks for, as far as those who observe it need to know: no field, no content, no principal.
public struct CallSubject: Sendable {
    /// Every event of a call bears it, so it is one reference.
    private final class Content: Sendable {
        let method: RequestMethod
        let url: RedactedURL?
        let operationName: String?

        init(_ method: RequestMethod, url: RedactedURL?, operationName: String?) {
            self.method = method
            self.url = url
            self.operationName = operationName
        }
    }

    private let content: Content

    /// A subject of one's own, for tests of observers.
    public init(method: RequestMethod, url: RedactedURL?, operationName: String? = nil) {
        content = Content(method, url: url, operationName: operationName)
    }

    /// The subject of a request.
    init(_ request: URLRequest, context: CallContext, operationName: String?) {
        let url = request.url.map { RedactedURL($0) }
        self.init(method: context.method(of: request), url: url, operationName: operationName)
    }

    /// The method of the request, or of the hop of it that is being made.
    public var method: RequestMethod { content.method }
    /// The URL, which prints without credentials.
    public var url: RedactedURL? { content.url }
    /// What the caller calls the operation: ``CallOptions/operationName``.
    public var operationName: String? { content.operationName }
}

/// What happens to calls as an asynchronous sequence, for those who would rather iterate than be called.
///
/// ```
/// let stream = EventStream(limit: 1000)
/// configuration.observers.append(stream)
/// for await event in stream.events { print(event) }
/// ```
///
/// Holds no more than its limit: whoever is slower than the calls loses the oldest events, and ``droppedCount`` says how many.
/// A call is never held up.
public final class EventStream: EventObserver {
    /// The events, in the order in which they happened; for one reader. Ends after ``finish()``, or when its stream is let go by
    /// every configuration that lists it.
    public let events: AsyncStream<ServiceEvent>

    private let continuation: AsyncStream<ServiceEvent>.Continuation
    private let names: Set<ServiceEvent.Name>?
    private let dropped = Atomic<Int>(0)

    /// A stream without events.
    ///
    /// - Parameters:
    ///   - limit: how many events wait for the reader at most, 1 at least; 1,024 by default.
    ///   - names: which events it takes; nil, the default: all.
    public init(limit: Int = 1024, names: Set<ServiceEvent.Name>? = nil) {
        self.names = names
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(max(limit, 1)))
    }

    deinit {
        continuation.finish()
    }

    /// How many events were lost because nobody had read them in time.
    public var droppedCount: Int { dropped.load(ordering: .relaxed) }

    public func observe(_ event: ServiceEvent) {
        if let names, !names.contains(event.name) { return }
        if case .dropped = continuation.yield(event) { dropped.add(1, ordering: .relaxed) }
    }

    /// Ends the sequence, once what waits in it has been read; further events are ignored.
    public func finish() {
        continuation.finish()
    }
}
