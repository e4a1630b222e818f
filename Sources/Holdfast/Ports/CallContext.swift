// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// The state of one call, passed to hooks, retriers and transports.
public struct CallContext: Sendable {
    /// The call's number within this process.
    public let callID: CallID
    /// The clock that all parts of the call use.
    public var clock: any HoldfastClock { environment.clock }
    /// The instant by which the response head must have arrived; nil: no limit.
    ///
    /// If several calls wait for one exchange, this is the latest of their deadlines, and it moves when another call joins.
    public internal(set) var deadline: MonotonicInstant? {
        get { if let fetch { fetch.deadline } else { ownDeadline } }
        set { ownDeadline = newValue }
    }
    /// The instant by which the current attempt must have its response head: the deadline or the attempt's timeout, whichever
    /// is first.
    public internal(set) var attemptDeadline: MonotonicInstant?
    /// The number of the current attempt; 0 before the first.
    public internal(set) var attempt = 0
    /// Whether the current attempt should use a new connection, because the previous one failed due to its connection (RFC 9110
    /// §15.5.20, §15.5.9). A transport that can choose should follow it.
    public internal(set) var wantsNewConnection = false
    /// What the caller asked for, in addition to the request.
    public var options: CallOptions
    /// The content to send; a hook may replace it in `onSchedule`.
    public var body: RequestBody
    /// What was sent and when; nil if nothing has been sent yet.
    public internal(set) var exchange: SentExchange?
    /// How many redirects have been followed so far.
    public internal(set) var redirectCount = 0
    /// Whether a redirect has led the current hop to an origin (scheme, host and port) other than the one where the call began.
    ///
    /// A transport, hook or prepare step that adds its own credential should not add it there.
    public internal(set) var isForeignHop = false
    /// Whether what hooks and prepare steps add to the hop in hand is not sent: it is foreign, and its origin is not trusted.
    var withholdsAdditions = false

    /// What the call asks for; kept only where somebody observes it.
    public internal(set) var subject: CallSubject? {
        get { extras?.value.subject }
        set { change(if: newValue != nil) { $0.subject = newValue } }
    }

    /// What the caller decides about the response that a cache holds back until then.
    var verdict: Verdict? {
        get { extras?.value.verdict }
        set { change(if: newValue != nil) { $0.verdict = newValue } }
    }
    /// The conditions a cache added to the request; a 304 that selects none of its responses is no answer.
    var conditions: AddedConditions? {
        get { extras?.value.conditions }
        set { change(if: newValue != nil) { $0.conditions = newValue } }
    }
    /// The caching hook's own state of the exchange in hand: of the hook that runs.
    var transaction: CacheTransaction? {
        get { extras?.value.transactions[currentHook] }
        set {
            let hook = currentHook
            change(if: newValue != nil) { $0.transactions[hook] = newValue }
        }
    }
    /// Whether an attempt ended so that the origin may have acted, which nothing that comes later takes back.
    var mayBeApplied = false
    /// Whether redirects are handed up: always, when a pipeline is another one's transport.
    var returnsRedirects = false
    /// The credential of the pipeline's own that the call bears.
    var authorized: AuthorizedCall? {
        get { extras?.value.authorized }
        set { change(if: newValue != nil) { $0.authorized = newValue } }
    }
    /// The header fields of the request as the caller gave it to the pipeline, the outermost one where pipelines are nested; nil
    /// where no hook but a cache's may have changed them. Not among the extras, since every call with a hook would allocate those.
    var callerFields: [String: String]?
    var currentHook = 0
    /// The chain that the running hook stands in.
    var chain: (any Forwarding)?
    /// The exchange that this is the context of, where other calls may be waiting for it too; nil once it is over.
    var fetch: Fetch? {
        get { extras?.value.fetchLink?.fetch }
        set { change(if: newValue != nil) { $0.fetchLink = newValue.map { FetchLink($0) } } }
    }
    /// Whether nobody waits for the exchange: a revalidation in the background, or a fetch whose callers have all been answered
    /// with something stale.
    ///
    /// Changes while the exchange goes on, since callers leave and others join.
    var isBackground: Bool {
        guard let extras = extras?.value else { return false }
        let isUnattendedAbove = extras.fetchLinkAbove?.fetch?.isUnattended ?? false
        guard let fetch else { return isUnattendedAbove }
        return fetch.isUnattended || isUnattendedAbove && fetch.readers <= 1
    }
    /// The fetches that wait for this call, outermost first: it must not wait for one of them.
    var fetchPath: [ObjectIdentifier] {
        get { extras?.value.fetchPath ?? [] }
        set { change(if: !newValue.isEmpty) { $0.fetchPath = newValue } }
    }
    /// The default implementation of a moment that ran last.
    var defaultTaken: DefaultMoment?
    /// Whether the attempt in hand ends with the call's deadline, rather than with a limit of its own.
    var attemptIsCut = false
    /// Runs what outlives the call.
    var background: BackgroundTasks { environment.background }
    private let environment: CallEnvironment
    private var ownDeadline: MonotonicInstant?
    private var extras: CopyOnWrite<Extras>?

    /// What few calls have: apart, so that the context of the others is cheap to hand on.
    private struct Extras: Sendable {
        var subject: CallSubject?
        var verdict: Verdict?
        var conditions: AddedConditions?
        /// By the place of the caching hook.
        var transactions: [Int: CacheTransaction] = [:]
        var authorized: AuthorizedCall?
        var fetchPath: [ObjectIdentifier] = []
        var fetchLink: FetchLink?
        var fetchLinkAbove: FetchLink?
        var hookStates: [HookStateKey: any Sendable] = [:]
    }

    /// - Parameter isSomething: whether the change sets anything; one that only clears makes no place for it.
    private mutating func change(if isSomething: Bool, _ change: (inout Extras) -> Void) {
        guard isSomething || extras != nil else { return }
        var changed = extras ?? CopyOnWrite(Extras())
        // Two references would make the change copy.
        extras = nil
        change(&changed.value)
        extras = changed
    }

    init(callID: CallID, environment: CallEnvironment, options: CallOptions, body: RequestBody) {
        self.callID = callID
        self.environment = environment
        self.options = options
        self.body = body
    }

    init(
        callID: CallID,
        clock: any HoldfastClock,
        options: CallOptions,
        body: RequestBody,
        transport: any Transport,
        observers: [any EventObserver],
        background: BackgroundTasks = BackgroundTasks()
    ) {
        self.init(
            callID: callID,
            environment: CallEnvironment(
                clock: clock,
                transport: transport,
                observers: observers,
                background: background
            ),
            options: options,
            body: body
        )
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

    /// State of the hook that is running, for this call (`.call`) or this hop of it (`.message`); other hooks do not see it.
    public subscript<State: Sendable>(_ type: State.Type) -> State? {
        get { extras?.value.hookStates[HookStateKey(hook: currentHook, type: ObjectIdentifier(type))] as? State }
        set {
            let key = HookStateKey(hook: currentHook, type: ObjectIdentifier(type))
            change(if: newValue != nil) { $0.hookStates[key] = newValue }
        }
    }

    /// The request's header fields together with those the transport will add below the hooks.
    ///
    /// A field of the request itself overrides an implicit one.
    public func presentedFields(of request: URLRequest) -> HeaderFields {
        presented(by: request).fields
    }

    /// What the pipeline sends through, which tells the truth about the implicit fields of the hop in hand.
    var transport: any Transport {
        isForeignHop ? ForeignHopTransport(transport: environment.transport, context: self) : environment.transport
    }

    /// As ``presentedFields(of:)``, put together once somebody reads them.
    func presented(by request: URLRequest) -> PresentedFields {
        PresentedFields(request, implicit: transport.implicitFields(for: request))
    }

    /// Whether there are observers; if not, there is no need to build an event.
    public var isObserved: Bool { !environment.observers.isEmpty }

    /// Tells the pipeline's observers about something that happened to this call.
    public func emit(_ name: ServiceEvent.Name, _ fill: (inout ServiceEvent) -> Void = { _ in }) {
        guard isObserved else { return }
        var event = ServiceEvent(name, callID: callID, timestamp: clock.timestamp)
        event.subject = subject
        if fetchPath.count > 0 { event.isBackground = isBackground }
        fill(&event)
        for observer in environment.observers { observer.observe(event) }
    }

    /// Reports an interim (1xx) response to the caller's `onInterimResponse` and to the observers.
    public func report(interim head: ResponseHead) {
        options.onInterimResponse?(head)
        emit(.interimResponse) { event in
            event.attempt = attempt
            event.status = head.status
        }
    }

    /// Makes this the context of what an attempt of `outer` asks another pipeline for.
    mutating func inherit(from outer: CallContext) {
        fetchPath = outer.fetchPath
        isForeignHop = outer.isForeignHop
        if let fields = outer.callerFields { callerFields = fields }
        let above = outer.extras?.value
        let link = above?.fetchLink ?? above?.fetchLinkAbove
        change(if: link != nil) { $0.fetchLinkAbove = link }
    }

    mutating func forgetHookStates(from firstHook: Int) {
        conditions = nil
        mayBeApplied = false
        guard let extras = extras?.value, !extras.hookStates.isEmpty || !extras.transactions.isEmpty else { return }
        change(if: true) { changed in
            changed.hookStates = extras.hookStates.filter { $0.key.hook < firstHook }
            changed.transactions = extras.transactions.filter { $0.key < firstHook }
        }
    }
}

private struct HookStateKey: Hashable, Sendable {
    let hook: Int
    let type: ObjectIdentifier
}

/// A fetch from within: it holds its response, and what a response is made of holds the context it came about in, so that
/// neither would ever be let go if the context held the fetch.
private final class FetchLink: Sendable {
    weak let fetch: Fetch?

    init(_ fetch: Fetch) {
        self.fetch = fetch
    }
}

/// A pipeline's transport as it is on a foreign hop, for those who ask it for implicit fields without a context.
private struct ForeignHopTransport: Transport {
    let transport: any Transport
    let context: CallContext

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await transport.send(request, body: body, context: context)
    }

    func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    var enforcesDeadline: Bool { transport.enforcesDeadline }
}

/// Stands in where a context has no pipeline.
private struct NoTransport: Transport {
    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        throw ServiceError(
            .unsupported,
            "This context does not belong to a pipeline. Send through a Pipeline or a Transport."
        )
    }
}

/// What all calls of a pipeline have in common.
final class CallEnvironment: Sendable {
    let clock: any HoldfastClock
    let transport: any Transport
    let observers: [any EventObserver]
    let background: BackgroundTasks

    init(
        clock: any HoldfastClock,
        transport: any Transport,
        observers: [any EventObserver],
        background: BackgroundTasks
    ) {
        self.clock = clock
        self.transport = transport
        self.observers = observers
        self.background = background
    }
}

/// A value behind one reference that is copied when a shared one is changed.
///
/// What has many parts and is handed from stage to stage would count each part's references up and down at every hand-over, which is
/// most of what a call costs that succeeds at once.
///
/// Proof: what lies behind the reference is changed in `_modify` alone, and only while this copy holds the only
/// reference to it, so that nobody else reads or writes it then; `Value` is Sendable itself. CopyOnWriteTests changes copies from
/// many tasks.
struct CopyOnWrite<Value: Sendable>: @unchecked Sendable {
    private final class Box {
        // The uniqueness above makes the check at run time needless, which each access would pay for.
        @exclusivity(unchecked)
        var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box

    /// A value of its own; costs one allocation.
    init(_ value: Value) {
        box = Box(value)
    }

    /// Whether both are one and the same, so that neither was changed since one was copied from the other.
    func isSame(as other: CopyOnWrite) -> Bool { box === other.box }

    /// The value; a change to it is seen by this copy alone.
    var value: Value {
        @inline(__always)
        _read { yield box.value }
        @inline(__always)
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}
