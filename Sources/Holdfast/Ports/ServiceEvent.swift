// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// Something that happened to a call, for logs, metrics and tests.
///
/// A flat record: ``name`` says what happened, and the fields that belong to it are set. New names and fields may be added.
public struct ServiceEvent: Sendable, CustomStringConvertible, CustomReflectable {
    /// What happened.
    public let name: Name
    /// The call that it happened to.
    public let callID: CallID
    /// When it happened.
    public let timestamp: Timestamp
    /// The attempt it belongs to, if any; the first is 1.
    public var attempt: Int?
    /// The status of a response.
    public var status: StatusCode?
    /// The source of the response that a call ended with.
    public var source: ResponseSource?
    /// A wait, or how long a call or attempt took.
    public var delay: Duration?
    /// Bytes of a body that has ended or was resumed, or that arrived whole with its head (there is no `bodyEnded` event for
    /// it).
    public var bytes: Int?
    /// The error that something ended with; its text may contain anything, so log its code.
    public var error: (any Error)?
    /// What the call's current hop requests; set on every event of a pipeline.
    public var subject: CallSubject?
    /// Whether the event belongs to a background revalidation, which no caller waits for.
    public var isBackground = false
    /// What a failed attempt proved.
    public var retryClass: RetryClass?
    /// Why no further attempt follows.
    public var stopReason: StopReason?
    /// How long a server asked clients to wait.
    public var retryAfter: Duration?
    /// How far a failed exchange got.
    public var progress: TransportProgress?
    /// Whether the connection of a failed exchange had been used before, as far as the transport knows.
    public var connectionReused: Bool?
    /// What a cache decided.
    public var cacheDecision: CacheDecision?
    /// The call whose exchange answered this one.
    public var leader: CallID?
    /// Why a response was not stored.
    public var notStoredReason: CacheReason?
    /// Where a redirect leads.
    public var redirectTarget: RedactedURL?
    /// A short explanation without credentials; by default, for a `cacheDecided` event, its ``cacheDecision`` in words.
    public var detail: String? {
        get { explanation ?? (name == .cacheDecided ? cacheDecision?.description : nil) }
        set { explanation = newValue }
    }
    private var explanation: String?

    /// The method, the URL and the operation name of ``subject``.
    public var method: RequestMethod? { subject?.method }
    public var url: RedactedURL? { subject?.url }
    public var operationName: String? { subject?.operationName }

    /// The code of ``error``: `cancelled`, that of a ``ServiceError``, or `other`; nil without one. A short word from a closed
    /// set, suitable for a metric label.
    public var errorCode: String? {
        error.map { $0.isCancellation ? "cancelled" : (($0 as? ServiceError)?.code ?? .other).description }
    }

    /// One line for people: the event, the call, and those of attempt, status, source, reason, waits and error that are set.
    /// Contains no credentials: of an error from elsewhere it shows only the type. The wording may change.
    public var description: String {
        var words = [name.description, callID.description]
        if let subject { words.append(subject.description) }
        if let operationName { words.append("(\(operationName))") }
        if let attempt { words.append("attempt \(attempt)") }
        if let status { words.append("status \(status.rawValue)") }
        if let source { words.append("from \(source)") }
        if let cacheDecision { words.append("[\(cacheDecision)]") }
        if let retryClass { words.append("class \(retryClass)") }
        if let stopReason { words.append("because \(stopReason.rawValue)") }
        if let notStoredReason, detail == nil { words.append("because \(notStoredReason)") }
        if let redirectTarget { words.append("to \(redirectTarget)") }
        if let leader { words.append("with \(leader)") }
        if let bytes { words.append("\(bytes) bytes") }
        if let delay { words.append("\(delay)") }
        if let retryAfter { words.append("retry after \(retryAfter)") }
        if let detail, cacheDecision == nil { words.append("(\(detail))") }
        if isBackground { words.append("in the background") }
        if let error { words.append("error: \((error as? ServiceError)?.message ?? "\(type(of: error))")") }
        return words.joined(separator: " ")
    }

    /// What `dump` shows: the ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

    /// An event; set the fields that belong to it afterward.
    public init(_ name: Name, callID: CallID, timestamp: Timestamp) {
        self.name = name
        self.callID = callID
        self.timestamp = timestamp
    }
}

/// Identifies a call within its process.
public struct CallID: Sendable, Hashable, CustomStringConvertible {
    /// The number; calls are numbered in the order in which they start.
    public let number: UInt64

    /// The call with this number.
    public init(number: UInt64) { self.number = number }

    public var description: String { "call-\(number)" }
}

/// Receives the events of calls; must be quick, must not block, and is called from many tasks at once.
public protocol EventObserver: Sendable {
    /// Receives an event.
    func observe(_ event: ServiceEvent)

    /// The events that this observer receives; nil, the default, means all.
    ///
    /// Read once, when a pipeline is made. Name the events you need: the pipeline then does not build the others, and a cache hit
    /// costs least when no observer receives `callStarted`, `cacheDecided` or `callEnded`.
    var observedEvents: Set<ServiceEvent.Name>? { get }
}

extension EventObserver {
    public var observedEvents: Set<ServiceEvent.Name>? { nil }
}

/// The observers of a pipeline, and the events that each receives.
struct EventObservers: Sendable {
    private struct Member: Sendable {
        let observer: any EventObserver
        let names: Set<ServiceEvent.Name>?

        func wants(_ name: ServiceEvent.Name) -> Bool { names?.contains(name) ?? true }
    }

    private let members: [Member]

    init(_ observers: [any EventObserver]) {
        members = observers.map { Member(observer: $0, names: $0.observedEvents) }
    }

    var isEmpty: Bool { members.isEmpty }

    func want(_ name: ServiceEvent.Name) -> Bool { members.contains { $0.wants(name) } }

    func receive(_ event: ServiceEvent) {
        for member in members where member.wants(event.name) { member.observer.observe(event) }
    }
}

extension ServiceEvent {
    /// What happened.
    public struct Name: Sendable, Hashable, CustomStringConvertible {
        /// A short, stable word, suitable for a metric label.
        public let description: String

        /// A custom name, for events of hooks and transports outside this package.
        public init(_ description: String) { self.description = description }

        /// A call started.
        public static let callStarted = Name("call-started")
        /// A call ended with a response or an error.
        public static let callEnded = Name("call-ended")
        /// An attempt is about to be sent.
        public static let attemptStarted = Name("attempt-started")
        /// An attempt got a response head or an error.
        public static let attemptEnded = Name("attempt-ended")
        /// An attempt failed, and a retry waits for ``ServiceEvent/delay`` before it asks the budget and the gates; class, status or
        /// error say why. ``retryScheduled`` follows, or ``retriesStopped``.
        public static let backoffAwaited = Name("backoff-awaited")
        /// An attempt failed, and another follows now, after ``ServiceEvent/delay`` and any wait for the budget, a gate or the
        /// learned rate; class, status or error say why. If one of them refuses it, there is only ``retriesStopped``.
        public static let retryScheduled = Name("retry-scheduled")
        /// Another attempt, about which no retrier was asked, will follow after ``ServiceEvent/delay``; ``ServiceEvent/detail``
        /// is `credential`, `unconditional` or `online`.
        public static let resendScheduled = Name("resend-scheduled")
        /// An attempt failed and no other follows; ``ServiceEvent/stopReason`` says why.
        public static let retriesStopped = Name("retries-stopped")
        /// A further copy of an attempt is sent, because the first is late; ``ServiceEvent/delay`` says how late.
        public static let hedgeStarted = Name("hedge-started")
        /// A further copy of an attempt ended, with its status or error (`cancelled` if another copy was faster);
        /// ``ServiceEvent/delay`` says how long it took.
        public static let hedgeEnded = Name("hedge-ended")
        /// A body that had broken off continues after ``ServiceEvent/bytes``, with ``ServiceEvent/delay`` since its last
        /// failure.
        public static let bodyResumed = Name("body-resumed")
        /// A circuit opened for ``ServiceEvent/delay``; ``ServiceEvent/detail`` is its origin.
        public static let circuitOpened = Name("circuit-opened")
        /// A circuit closed; ``ServiceEvent/detail`` is its origin.
        public static let circuitClosed = Name("circuit-closed")
        /// A server's response closed the gate of its partition for ``ServiceEvent/delay``.
        public static let gateClosed = Name("gate-closed")
        /// An attempt waits at a closed gate for ``ServiceEvent/delay``.
        public static let gateAwaited = Name("gate-awaited")
        /// An attempt waits for ``ServiceEvent/delay``, to keep to the learned rate.
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
        /// A cache decided what to do with a request; ``ServiceEvent/cacheDecision`` holds the decision,
        /// ``ServiceEvent/detail`` puts it in words.
        public static let cacheDecided = Name("cache-decided")
        /// A response was stored.
        public static let responseStored = Name("response-stored")
        /// A response was not stored; ``ServiceEvent/notStoredReason`` says why, ``ServiceEvent/detail`` in words.
        public static let responseNotStored = Name("response-not-stored")
        /// A background revalidation began, or a call's own exchange became one.
        public static let backgroundRevalidationStarted = Name("background-revalidation-started")
        /// A background revalidation failed, or its response could not be stored.
        public static let backgroundRevalidationFailed = Name("background-revalidation-failed")
        /// An exchange has waited for ``ServiceEvent/delay`` while another process fetched the same; ``ServiceEvent/detail`` is
        /// the result: an outcome of a lease, or `overtime`.
        public static let fillAwaited = Name("fill-awaited")
        /// A store failed and was treated as a miss.
        public static let storeFailed = Name("store-failed")
    }
}

/// What a call requests, as far as observers need to know: without fields, content or principal.
public struct CallSubject: Sendable, CustomStringConvertible {
    /// Every event of a call has it, so it is one reference.
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

    /// A subject for tests of observers.
    public init(method: RequestMethod, url: RedactedURL?, operationName: String? = nil) {
        content = Content(method, url: url, operationName: operationName)
    }

    /// The subject of a request as its caller made it.
    package init(_ request: URLRequest) {
        self.init(method: RequestMethod(request), url: request.url.map { RedactedURL($0) })
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
    /// The caller's name for the operation: ``CallOptions/operationName``.
    public var operationName: String? { content.operationName }

    /// The method and the URL without credentials: "GET https://api.example/items".
    public var description: String { method.rawValue + (url.map { " \($0)" } ?? "") }
}

/// The events of calls as an asynchronous sequence.
///
/// ```
/// let stream = EventStream(limit: 1000)
/// configuration.observers.append(stream)
/// for await event in stream.events { print(event) }
/// ```
///
/// Holds no more events than its limit: a reader that is slower than the calls loses the oldest events, and ``droppedCount``
/// says how many. Calls are never delayed.
public final class EventStream: EventObserver {
    /// The events, in the order in which they happened; for one reader. Ends after ``finish()``, or when every configuration
    /// that lists the stream has released it.
    public let events: AsyncStream<ServiceEvent>

    private let continuation: AsyncStream<ServiceEvent>.Continuation
    private let names: Set<ServiceEvent.Name>?
    private let dropped = Atomic<Int>(0)

    /// A stream without events.
    ///
    /// - Parameters:
    ///   - limit: the most events that wait for the reader, at least 1; 1,024 by default.
    ///   - names: which events it takes; nil, the default: all.
    public init(limit: Int = 1024, names: Set<ServiceEvent.Name>? = nil) {
        self.names = names
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(max(limit, 1)))
    }

    deinit {
        continuation.finish()
    }

    /// How many events were lost because they were not read in time.
    public var droppedCount: Int { dropped.load(ordering: .relaxed) }

    public func observe(_ event: ServiceEvent) {
        if let names, !names.contains(event.name) { return }
        if case .dropped = continuation.yield(event) { dropped.add(1, ordering: .relaxed) }
    }

    /// Ends the sequence once the waiting events have been read; further events are ignored.
    public func finish() {
        continuation.finish()
    }
}
