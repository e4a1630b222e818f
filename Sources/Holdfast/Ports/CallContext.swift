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
public struct CallContext: Sendable, CustomStringConvertible, CustomReflectable {
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
    /// Whether a redirect to a GET has answered an unsafe request of this call, which must not be sent again.
    var hasAnsweredWrite = false
    /// Whether a redirect has led the current hop to an origin (scheme, host and port) other than the one where the call began.
    ///
    /// A transport, hook or prepare step that adds its own credential should not add it there.
    public internal(set) var isForeignHop = false
    /// Whether what hooks and prepare steps add to the current hop is withheld: it is foreign, and its origin is not trusted.
    var withholdsAdditions = false

    /// What the call requests; stored only if somebody observes it.
    public internal(set) var subject: CallSubject? {
        get { extras?.value.subject }
        set { change(if: newValue != nil) { $0.subject = newValue } }
    }

    /// The caller's verdict about the response, which a cache waits for.
    var verdict: Verdict? {
        get { extras?.value.verdict }
        set { change(if: newValue != nil) { $0.verdict = newValue } }
    }
    /// The conditions that a cache added to the request; a 304 that selects none of its responses is no answer.
    var conditions: AddedConditions? {
        get { extras?.value.conditions }
        set { change(if: newValue != nil) { $0.conditions = newValue } }
    }
    /// The running caching hook's own state of the current exchange.
    var transaction: CacheTransaction? {
        get { extras?.value.transactions[currentHook] }
        set {
            let hook = currentHook
            change(if: newValue != nil) { $0.transactions[hook] = newValue }
        }
    }
    /// What was looked up before the call had a context; the first caching hook takes it.
    mutating func takeKnown() -> KnownEntries {
        guard let known = extras?.value.known, !known.isEmpty else { return KnownEntries() }
        change(if: true) { $0.known = KnownEntries() }
        return known
    }
    mutating func setKnown(_ known: KnownEntries) { change(if: !known.isEmpty) { $0.known = known } }
    /// Whether an attempt ended so that the origin may have acted, which nothing later can undo.
    var mayBeApplied = false
    /// Whether redirects are returned: always, if a pipeline is another one's transport.
    var returnsRedirects = false
    /// The pipeline's own credential that the call has.
    var authorized: AuthorizedCall? {
        get { extras?.value.authorized }
        set { change(if: newValue != nil) { $0.authorized = newValue } }
    }
    /// The header fields of the request as the caller passed it to the pipeline (the outermost one, if nested); nil if no hook
    /// except a cache's may have changed them. Not among the extras, since every call with a hook would allocate those.
    var callerFields: [String: String]?
    var currentHook = 0
    /// The chain of the running hook.
    var chain: (any Forwarding)?
    /// The fetch whose exchange this context belongs to, if other calls may be waiting for it too; nil once it is over.
    var fetch: Fetch? {
        get { extras?.value.fetchLink?.fetch }
        set { change(if: newValue != nil) { $0.fetchLink = newValue.map { FetchLink($0) } } }
    }
    /// Whether nobody waits for the exchange: a background revalidation, or a fetch whose callers have all been answered with
    /// something stale.
    ///
    /// Changes during the exchange, since callers leave and others join.
    var isBackground: Bool {
        guard let extras = extras?.value else { return false }
        let isUnattendedAbove = extras.fetchLinkAbove?.fetch?.isUnattended ?? false
        guard let fetch else { return isUnattendedAbove }
        return fetch.isUnattended || isUnattendedAbove && fetch.readers <= 1
    }
    /// The fetches that wait for this call, outermost first: it must not wait for any of them.
    var fetchPath: [ObjectIdentifier] {
        get { extras?.value.fetchPath ?? [] }
        set { change(if: !newValue.isEmpty) { $0.fetchPath = newValue } }
    }
    /// The default implementation of a moment that ran last.
    var defaultTaken: DefaultMoment?
    /// Whether the current attempt ends with the call's deadline instead of its own limit.
    var attemptIsCut = false
    /// The limits of the pipeline's calls.
    var timeLimits: TimeLimits { environment.timeLimits }
    /// Whether the deadline is that of another call that waits for the same exchange.
    var sharesDeadline: Bool { fetch.map { $0.deadline != ownDeadline } ?? false }
    /// Runs work that outlives the call.
    var background: BackgroundTasks { environment.background }
    private let environment: CallEnvironment
    private var ownDeadline: MonotonicInstant?
    private var extras: CopyOnWrite<Extras>?

    /// What only few calls have; separate, so that the context of the others is cheap to pass on.
    private struct Extras: Sendable {
        var subject: CallSubject?
        var verdict: Verdict?
        var known = KnownEntries()
        var conditions: AddedConditions?
        /// By the position of the caching hook.
        var transactions: [Int: CacheTransaction] = [:]
        var authorized: AuthorizedCall?
        var fetchPath: [ObjectIdentifier] = []
        var fetchLink: FetchLink?
        var fetchLinkAbove: FetchLink?
        var hookStates: [HookStateKey: any Sendable] = [:]
    }

    /// - Parameter isSomething: whether the change sets anything; a change that only clears does not allocate.
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

    /// A context outside any pipeline, for calling a transport directly.
    public init(
        clock: any HoldfastClock = SystemClock(),
        deadline: MonotonicInstant? = nil,
        options: CallOptions = CallOptions()
    ) {
        self.init(
            callID: CallID(number: 0),
            environment: CallEnvironment(
                clock: clock,
                transport: NoTransport(),
                observers: [],
                background: BackgroundTasks()
            ),
            options: options,
            body: .none
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

    /// The pipeline's transport, with the correct implicit fields for the current hop.
    var transport: any Transport {
        isForeignHop ? ForeignHopTransport(transport: environment.transport, context: self) : environment.transport
    }

    /// Like ``presentedFields(of:)``, but put together only when they are read.
    func presented(by request: URLRequest) -> PresentedFields {
        PresentedFields(request, implicit: transport.implicitFields(for: request))
    }

    /// One line: the call and its current attempt. What a caller asked for may contain credentials.
    public var description: String { attempt > 0 ? "call \(callID), attempt \(attempt)" : "call \(callID)" }

    /// What `dump` shows: the ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

    /// Whether there are observers; if not, there is no need to build an event.
    public var isObserved: Bool { !environment.observers.isEmpty }

    /// Tells the pipeline's observers about something that happened to this call.
    package func emit(_ name: ServiceEvent.Name, _ fill: (inout ServiceEvent) -> Void = { _ in }) {
        guard environment.observers.want(name) else { return }
        var event = ServiceEvent(name, callID: callID, timestamp: clock.timestamp)
        event.subject = subject
        if fetchPath.count > 0 { event.isBackground = isBackground }
        fill(&event)
        environment.observers.receive(event)
    }

    /// Reports an interim (1xx) response to the caller's `onInterimResponse` and to the observers.
    public func report(interim head: ResponseHead) {
        options.onInterimResponse?(head)
        emit(.interimResponse) { event in
            event.attempt = attempt
            event.status = head.status
        }
    }

    /// Makes this the context of a call to another pipeline for an attempt of `outer`.
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

/// A weak link to a fetch: the fetch holds its response, which holds the context that it came from, so neither would ever be
/// released if the context held the fetch.
private final class FetchLink: Sendable {
    weak let fetch: Fetch?

    init(_ fetch: Fetch) { self.fetch = fetch }
}

/// A pipeline's transport on a foreign hop, for code that asks it for implicit fields without a context.
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

/// Used if a context has no pipeline.
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
    let observers: EventObservers
    let background: BackgroundTasks
    let timeLimits: TimeLimits

    init(
        clock: any HoldfastClock,
        transport: any Transport,
        observers: [any EventObserver],
        background: BackgroundTasks,
        timeLimits: TimeLimits = TimeLimits()
    ) {
        self.clock = clock
        self.transport = transport
        self.observers = EventObservers(observers)
        self.background = background
        self.timeLimits = timeLimits
    }
}

/// A value behind one reference that is copied when a shared one is changed.
///
/// A value with many parts that is passed from stage to stage would count each part's references at every step, which is most of
/// the cost of a call that succeeds at once.
///
/// Proof: the referenced value is changed only in `_modify`, and only while this copy has the only reference to it, so nobody else
/// reads or writes it then; `Value` is Sendable itself. CopyOnWriteTests changes copies from many tasks.
struct CopyOnWrite<Value: Sendable>: @unchecked Sendable {
    private final class Box {
        // The uniqueness above makes the run-time check, which each access would pay for, unnecessary.
        @exclusivity(unchecked)
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    /// A new value; costs one allocation.
    init(_ value: Value) { box = Box(value) }

    /// Whether both are the same, so that neither was changed since one was copied from the other.
    func isSame(as other: CopyOnWrite) -> Bool { box === other.box }

    /// The value; a change affects only this copy.
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
