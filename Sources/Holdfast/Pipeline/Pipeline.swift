// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Wraps a transport with hooks, a cache, redirects and retries; itself a ``Transport``, so pipelines nest.
///
/// A call passes through the `.call` hooks, the caller's acceptance, the redirect loop, the `.message` hooks, the cache and the
/// attempt loop to the transport; its response comes back the same way. A pipeline is a value: copies share transport, cache
/// and hooks, and may be used from any number of tasks.
public struct Pipeline: WrappingTransport {
    /// The transport that the pipeline sends through.
    public let transport: any Transport
    /// The cache below all hooks, if there is one.
    public let cache: HTTPCache?
    /// How calls are treated.
    public let configuration: PipelineConfiguration

    private typealias Stages = HookChain<AcceptanceStage<RedirectLoop<HookChain<AttemptLoop>>>>
    private let stages: Stages
    private let governance: Governance
    private let environment: CallEnvironment
    private let callTimeout: Duration?
    /// The caching hook, if no other hook or interceptor takes part in a call that it answers, and no observer receives its events.
    private let loneCache: CachingHook?
    /// Whether calls without options may get an idempotency key.
    private let mayMintKeys: Bool
    /// Whether hooks other than a cache's may change the fields of a request.
    private let keepsCallerFields: Bool
    var background: BackgroundTasks { environment.background }

    private static let lastCallID = Atomic<UInt64>(0)

    /// A pipeline around `transport`.
    ///
    /// - Parameters:
    ///   - transport: sends the requests; `URLSessionTransport()` for the platform's URLSession.
    ///   - cache: stores and reuses responses by RFC 9111; nil, the default: no cache.
    ///   - retrierFactory: makes the retrier of each call that fails; `.never` by default.
    ///   - hooks: are called for each call, in this order; those of scope `.message` run above the cache.
    ///   - configuration: clock, timeouts, redirects, prepare steps, observers.
    public init(
        transport: any Transport,
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        configuration: PipelineConfiguration = PipelineConfiguration()
    ) {
        let governance = Governance(retrierFactory)
        self.init(
            transport: transport,
            cache: cache,
            hooks: hooks,
            configuration: configuration,
            governance: governance,
            environment: CallEnvironment(
                clock: configuration.clock,
                transport: transport,
                observers: configuration.observers,
                background: BackgroundTasks(executor: configuration.executor),
                timeLimits: TimeLimits(
                    callTimeout: configuration.callTimeout,
                    attemptTimeout: configuration.attemptTimeout,
                    governance: governance
                )
            )
        )
    }

    /// A pipeline that takes the place of another one, with another cache and without its hooks: budgets, gates, observers and the
    /// work in the background, for which ``drain()`` waits, are those of both.
    package init(succeeding former: Pipeline, cache: HTTPCache?) {
        self.init(
            transport: former.transport,
            cache: cache,
            hooks: [],
            configuration: former.configuration,
            governance: former.governance,
            environment: former.environment
        )
    }

    private init(
        transport: any Transport,
        cache: HTTPCache?,
        hooks: [any ServiceHook],
        configuration: PipelineConfiguration,
        governance: Governance,
        environment: CallEnvironment
    ) {
        self.transport = transport
        self.cache = cache
        self.configuration = configuration
        self.governance = governance
        self.environment = environment
        callTimeout = configuration.callTimeout ?? governance.own?.rules.callTimeout
        let isAlone =
            hooks.isEmpty && configuration.authorization == nil && configuration.interceptors.isEmpty
            && ![.callStarted, .cacheDecided, .callEnded].contains(where: environment.observers.want)
        loneCache = isAlone ? cache.map { CachingHook($0) } : nil
        mayMintKeys = governance.own?.rules.mintsIdempotencyKey ?? false
        keepsCallerFields =
            configuration.authorization != nil || !hooks.allSatisfy { $0 is CachingHook || $0 is CachingServiceHook }
        var callHooks = hooks.filter { $0.scope == .call }
        if let authorization = configuration.authorization { callHooks.append(AuthorizationHook(authorization)) }
        var messageHooks = hooks.filter { $0.scope == .message }
        if let cache { messageHooks.append(CachingHook(cache)) }
        let sending: any Transport =
            configuration.interceptors.isEmpty
            ? transport : SurroundedTransport(transport: transport, interceptors: configuration.interceptors)
        let attempts = AttemptLoop(
            transport: sending,
            governance: governance,
            prepare: configuration.prepare,
            authorization: configuration.authorization,
            attemptTimeout: configuration.attemptTimeout
        )
        let hops = HookChain(hooks: messageHooks, firstIndex: callHooks.count, next: attempts)
        let redirects = RedirectLoop(
            policy: configuration.redirects,
            trustedOrigins: configuration.trustedOrigins,
            governance: governance,
            firstHookBelow: callHooks.count,
            next: hops
        )
        stages = HookChain(
            hooks: callHooks,
            firstIndex: 0,
            next: AcceptanceStage(firstHookBelow: callHooks.count, next: redirects)
        )
    }

    /// Sends a request and returns at its response head.
    ///
    /// - Parameters:
    ///   - request: what to send; its own body is used if `body` is nil.
    ///   - body: the content; nil: that of the request itself.
    ///   - options: the options of this call.
    /// - Returns: the response, whatever its status, unless `options.acceptance` rejects it; if the retries gave up, the last
    ///   response, with its body unread.
    /// - Throws: ``ServiceError``, `CancellationError` promptly after cancellation, or what a hook or the transport threw.
    public func send(
        _ request: URLRequest,
        body: RequestBody? = nil,
        options: CallOptions = CallOptions()
    ) async throws -> Response {
        var known = KnownEntries()
        if let response = loneAnswer(to: request, body: body, options: options, known: &known) { return response }
        if !options.areDefault, let inForce = options.rulesInForce {
            do throws(RetryRulesError) {
                try inForce.rules.validate()
            } catch {
                options.progress?.fail()
                throw ServiceError(.badRequest, "CallOptions.retryRules.\(error)", cause: error, progress: .notSent)
                    .naming(CallSubject(request))
            }
        }
        let callerFields = keepsCallerFields ? request.allHTTPHeaderFields ?? [:] : nil
        var request = request
        if mayMintKeys || !options.areDefault { addIdempotencyKey(to: &request, options) }
        var context = CallContext(
            callID: CallID(number: Pipeline.lastCallID.add(1, ordering: .relaxed).newValue),
            environment: environment,
            options: options,
            body: body ?? .carried(by: request)
        )
        context.setKnown(known)
        if let timeout = timeout(of: options) {
            context.deadline = configuration.clock.now.advanced(by: timeout)
        }
        if let callerFields { context.callerFields = callerFields }
        if !options.areDefault, options.isForeignHop {
            context.isForeignHop = true
            context.withholdsAdditions = context.withholds(
                from: request,
                trustedOrigins: configuration.trustedOrigins
            )
        }
        var response = try await run(request, context: &context)
        if let deadline = context.deadline {
            response.deadline = CallDeadline(deadline, limit: context.callLimit)
        }
        response.body.call = BodyCall(request: request, attempts: response.attempts)
        return response
    }

    /// The time limit of a call with these options: its own, or the pipeline's, or that of its rules.
    package func timeLimit(of options: CallOptions) -> TimeLimit? { environment.timeLimits.call(options) }

    private func timeout(of options: CallOptions) -> Duration? {
        options.areDefault ? callTimeout : timeLimit(of: options)?.duration
    }

    /// Sends a request as the transport of another pipeline, whose deadline and options apply here too.
    ///
    /// The outer call's acceptance and its own retrier do not apply here. As with any transport, redirects are returned, not
    /// followed. Responses that this pipeline's hooks make are never stored by a cache of the outer one, which cannot see for
    /// whom they were made.
    public func send(_ request: URLRequest, body: RequestBody, context outer: CallContext) async throws -> Response {
        var options = outer.options
        options.acceptance = nil
        options.retrierFactory = nil
        options.retryRules = nil
        options.storing = nil
        options.progress = nil
        // They have already run, and once is enough for a signature.
        options.prepare = []
        options.renewal = nil
        var context = CallContext(
            callID: outer.callID,
            environment: environment,
            options: options,
            body: body
        )
        if let left = outer.attemptDeadline.map({ outer.clock.now.duration(to: $0) }) {
            context.deadline = configuration.clock.now.advanced(by: left)
        }
        if let timeout = callTimeout {
            let own = configuration.clock.now.advanced(by: timeout)
            context.deadline = context.deadline.map { min($0, own) } ?? own
        }
        context.returnsRedirects = true
        context.inherit(from: outer)
        if context.isForeignHop {
            context.withholdsAdditions = context.withholds(
                from: request,
                trustedOrigins: configuration.trustedOrigins
            )
        }
        if keepsCallerFields, context.callerFields == nil {
            context.callerFields = request.allHTTPHeaderFields ?? [:]
        }
        var response = try await run(request, context: &context)
        if case .unknown = response.presentation { response.presentation = .hidden }
        return response
    }

    /// Waits until all work that outlived its call has ended: exchanges whose callers left while the response was being stored,
    /// and background revalidations. Call it before you close a cache or end the process.
    ///
    /// Also waits for bodies from the network that a caller has neither read to the end nor dropped. If the waiting task is cancelled, it
    /// returns at once, and the work goes on.
    public func drain() async {
        await background.drain()
    }

    /// The inner attempt loop ends each attempt itself.
    public var enforcesDeadline: Bool { true }

    /// The fresh hit of a cache that is alone in the pipeline: then nothing else takes part in the call.
    ///
    /// - Parameter known: gets what was looked up.
    private func loneAnswer(
        to request: URLRequest,
        body: RequestBody?,
        options: CallOptions,
        known: inout KnownEntries
    ) -> Response? {
        guard let loneCache, !options.concernHits, body?.isNone ?? true, request.httpBody == nil,
            request.httpBodyStream == nil
        else { return nil }
        let history = LookupHistory(begun: environment.clock.now)
        return loneCache.freshHit(
            for: request,
            principal: options.areDefault ? nil : options.principal,
            history: history,
            clock: environment.clock,
            transport: transport,
            known: &known
        )?.response
    }

    private func run(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        guard InterceptionRegistry.shared.intercepts(for: identity) else {
            return try await perform(request, context: &context)
        }
        // Requests sent below must not return through a session that this pipeline intercepts, and wait for themselves.
        let atWork = Interception.pipelinesAtWork.union([identity])
        return try await Interception.$pipelinesAtWork.withValue(atWork) {
            try await perform(Interception.marked(request, by: identity), context: &context)
        }
    }

    private func perform(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        let interceptors = configuration.interceptors
        guard context.isObserved || !interceptors.isEmpty else { return try await exchange(request, context: &context) }
        context.subject = CallSubject(request, context: context, operationName: context.options.operationName)
        return try await intercepted(request, context: &context, by: interceptors[...])
    }

    private func intercepted(
        _ request: URLRequest,
        context: inout CallContext,
        by interceptors: ArraySlice<any CallInterceptor>
    ) async throws -> Response {
        guard let outermost = interceptors.first else { return try await observed(request, context: &context) }
        return try await outermost.interceptCall(request, context: context) {
            try await intercepted(request, context: &context, by: interceptors.dropFirst())
        }
    }

    private func observed(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        let start = context.clock.now
        context.emit(.callStarted)
        do {
            let response = try await exchange(request, context: &context)
            context.emit(.callEnded) { event in
                event.status = response.status
                event.source = response.source
                event.cacheDecision = response.cacheDecision
                event.delay = start.duration(to: context.clock.now)
            }
            return response
        } catch {
            context.emit(.callEnded) { event in
                event.describe(error)
                event.delay = start.duration(to: context.clock.now)
            }
            throw error
        }
    }

    /// Once for each call, above redirects, so that everything sent for it has the same key.
    private func addIdempotencyKey(to request: inout URLRequest, _ options: CallOptions) {
        guard let rules = governance.rules(for: options)?.rules, rules.mintsIdempotencyKey else { return }
        // A method with other case is another method, which the URLRequest cannot show.
        if let exact = options.exactHead, exact.stands(for: request), ![.post, .patch].contains(exact.method) {
            return
        }
        var generator = SystemRandomNumberGenerator()
        rules.addIdempotencyKey(to: &request, using: &generator)
    }

    private func exchange(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        do {
            let response = try await stages.exchange(request, context: &context)
            guard !context.options.areDefault, let progress = context.options.progress, !progress.hasBegun else {
                return response
            }
            return response.reporting(to: progress)
        } catch {
            context.options.progress?.fail()
            // One error for cancellation, no matter who noticed it first.
            if error.isCancellation { throw CancellationError() }
            throw error.naming(context.subject ?? CallSubject(request, context: context, operationName: nil))
        }
    }
}
