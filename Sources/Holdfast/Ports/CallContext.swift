// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// What travels with one call through hooks, retriers and transports.
public struct CallContext: Sendable {
    /// The call's number within this process.
    public let callID: CallID
    /// The time all parts of the call go by.
    public let clock: any HoldfastClock
    /// The instant by which the response head must be there; nil: no limit.
    ///
    /// Of an exchange that several calls wait for it is the latest of theirs, and moves on when another one joins.
    public internal(set) var deadline: MonotonicInstant? {
        get { if let flight { flight.deadline } else { ownDeadline } }
        set { ownDeadline = newValue }
    }
    /// The instant by which the attempt in hand must have its head: the deadline or the attempt's timeout, whichever is first.
    public internal(set) var attemptDeadline: MonotonicInstant?
    /// The number of the attempt in hand; 0 before the first.
    public internal(set) var attempt = 0
    /// Whether the attempt in hand should go over a connection of its own: the one before failed because of its connection
    /// (RFC 9110 §15.5.20, §15.5.9). A transport that can choose should heed it.
    public internal(set) var wantsNewConnection = false
    /// What the caller asked for beside the request.
    public var options: CallOptions
    /// The content to send; a hook may replace it in `onSchedule`.
    public var body: RequestBody
    /// What was sent and when, once something was.
    public internal(set) var exchange: SentExchange?
    /// How many redirects were followed so far.
    public internal(set) var redirectCount = 0

    /// What the call asks for; kept only where somebody observes it.
    public internal(set) var subject: CallSubject?

    var verdict: Verdict?
    /// The conditions a cache added to the request; a 304 that selects none of its responses is no answer.
    var validation: OfferedValidation?
    /// Whether an attempt ended so that the origin may have acted, which nothing that comes later takes back.
    var mayBeApplied = false
    /// Whether redirects are handed up: always, when a pipeline is another one's transport.
    var handsRedirectsUp = false
    /// The credential of the pipeline's own that the call bears.
    var authorized: AuthorizedCall?
    var currentHook = 0
    /// The chain that the running hook stands in.
    var chain: (any Forwarding)?
    /// The exchange that this is the context of, where other calls may be waiting for it too; nil once it is over.
    var flight: Flight? {
        get { flightLink?.flight }
        set { flightLink = newValue.map { FlightLink($0) } }
    }
    /// Whether nobody waits for the exchange: a revalidation in the background, or a flight whose callers have all been answered
    /// with something stale.
    ///
    /// Changes while the exchange goes on, since callers leave and others join.
    var isBackground: Bool {
        let isUnattendedAbove = flightLinkAbove?.flight?.isUnattended ?? false
        guard let flight else { return isUnattendedAbove }
        return flight.isUnattended || isUnattendedAbove && flight.readers <= 1
    }
    /// The flights that wait for this call, outermost first: it must not wait for one of them.
    var flightPath: [ObjectIdentifier] = []
    /// Whether the attempt in hand ends with the call's deadline, rather than with a limit of its own.
    var attemptIsCut = false
    /// Runs what outlives the call.
    let background: BackgroundTasks
    private var flightLink: FlightLink?
    private var flightLinkAbove: FlightLink?
    private var ownDeadline: MonotonicInstant?
    private var hookStates: [HookStateKey: any Sendable] = [:]
    private let transport: any Transport
    private let observers: [any EventObserver]

    init(
        callID: CallID,
        clock: any HoldfastClock,
        options: CallOptions,
        body: RequestBody,
        transport: any Transport,
        observers: [any EventObserver],
        background: BackgroundTasks = BackgroundTasks()
    ) {
        self.callID = callID
        self.clock = clock
        self.options = options
        self.body = body
        self.transport = transport
        self.observers = observers
        self.background = background
    }

    /// A context outside any pipeline, for calling a transport directly.
    public init(
        clock: any HoldfastClock = SystemClock(),
        deadline: MonotonicInstant? = nil,
        options: CallOptions = CallOptions()
    ) {
        self.init(
            callID: CallID(number: 0),
            clock: clock,
            options: options,
            body: .none,
            transport: NoTransport(),
            observers: []
        )
        self.deadline = deadline
        attemptDeadline = deadline
    }

    /// State of the hook that is running, for this call (`.call`) or this hop of it (`.message`); no other hook sees it.
    public subscript<State: Sendable>(_ type: State.Type) -> State? {
        get { hookStates[HookStateKey(hook: currentHook, type: ObjectIdentifier(type))] as? State }
        set { hookStates[HookStateKey(hook: currentHook, type: ObjectIdentifier(type))] = newValue }
    }

    /// The request's header fields together with those the transport will add beneath the hooks.
    ///
    /// A field that the request names itself wins over an implicit one.
    public func presentedFields(of request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request).merging(HeaderFields(request.allHTTPHeaderFields ?? [:]))
    }

    /// Whether anyone listens, so that building an event can be spared.
    public var isObserved: Bool { !observers.isEmpty }

    /// Tells the pipeline's observers of something that happened to this call.
    public func emit(_ name: ServiceEvent.Name, _ fill: (inout ServiceEvent) -> Void = { _ in }) {
        guard !observers.isEmpty else { return }
        var event = ServiceEvent(name, callID: callID, timestamp: clock.timestamp)
        event.subject = subject
        if flightPath.count > 0 { event.isBackground = isBackground }
        fill(&event)
        for observer in observers { observer.observe(event) }
    }

    /// Hands up an interim (1xx) response: to the caller's `onInterimResponse` and to the observers.
    public func report(interim head: ResponseHead) {
        options.onInterimResponse?(head)
        emit(.interimResponse) { event in
            event.attempt = attempt
            event.status = head.status
        }
    }

    /// Makes this the context of what an attempt of `outer` asks another pipeline for.
    mutating func stand(beneath outer: CallContext) {
        flightPath = outer.flightPath
        flightLinkAbove = outer.flightLink ?? outer.flightLinkAbove
    }

    mutating func forgetHookStates(from firstHook: Int) {
        validation = nil
        mayBeApplied = false
        guard !hookStates.isEmpty else { return }
        hookStates = hookStates.filter { $0.key.hook < firstHook }
    }
}

/// What was sent for a call, and when: of the last attempt.
public struct SentExchange: Sendable {
    /// The request as it went to the transport, after every `prepare` step.
    public let request: URLRequest
    /// Its fields together with the transport's implicit ones.
    public let presentedFields: HeaderFields
    /// When it was handed to the transport.
    public let requestTime: Timestamp
    /// When the response head was there; nil when none came.
    public internal(set) var responseTime: Timestamp?
}

/// What a cache asked in place of the caller, and how to tell whether a response answers that.
struct OfferedValidation: Sendable {
    /// The fields that the caller's request had itself, of those that were replaced.
    let own: [FieldName: String]
    let replaced: [FieldName]
    /// Whether it asked for a part, which is not what the caller will be given.
    let asksPart: Bool
    let isAnswered: @Sendable (_ response: Response) -> Bool
    /// Asks with conditions that fit what is stored by now; nil where the request is good as it is.
    let renewed: @Sendable (_ context: inout CallContext) async -> URLRequest?
}

private struct HookStateKey: Hashable, Sendable {
    let hook: Int
    let type: ObjectIdentifier
}

/// A flight from within: it holds its response, and what a response is made of holds the context it came about in, so that
/// neither would ever be let go if the context held the flight.
private final class FlightLink: Sendable {
    weak let flight: Flight?

    init(_ flight: Flight) {
        self.flight = flight
    }
}

/// Stands in where a context has no pipeline.
private struct NoTransport: Transport {
    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        throw ServiceError(.unsupported, "This context belongs to no pipeline; send through a Pipeline or a Transport.")
    }
}
