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

/// A pipeline in a session configuration: which requests it takes, and how they are treated.
struct Interception: Sendable {
    /// The pipelines that the running code is serving a request for.
    ///
    /// Requests that the transport or a hook of a pipeline sends through its own intercepted session must not come back to it.
    @TaskLocal static var pipelinesAtWork: Set<ObjectIdentifier> = []

    let pipeline: Pipeline
    let settings: InterceptionSettings
    let matching: (@Sendable (URLRequest) -> Bool)?
    let bodyLimit: Int

    var pipelineIdentity: ObjectIdentifier { pipeline.identity }

    /// Whether a request belongs to the pipeline. Runs no code of the pipeline.
    func takes(_ request: URLRequest) -> Bool {
        guard let scheme = request.url?.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            return false
        }
        guard !Interception.pipelinesAtWork.contains(pipelineIdentity),
            !Interception.isMarked(request, by: pipelineIdentity)
        else { return false }
        return matching?(request) ?? true
    }

    /// Sends a request through the pipeline, up to the response head.
    func send(_ request: URLRequest) async throws -> Response {
        var options = CallOptions()
        if let limit = settings.callLimit(within: pipeline.configuration.callTimeout) {
            options.setTimeout(limit.duration, of: limit)
        }
        options.cookies = settings.cookies(for: request)
        return try await pipeline.send(settings.complete(request), options: options)
    }

    #if canImport(Darwin)
        private static func mark(of pipeline: ObjectIdentifier) -> String {
            "holdfast.intercepted.\(UInt(bitPattern: pipeline))"
        }

        private static func isMarked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> Bool {
            URLProtocol.property(forKey: mark(of: pipeline), in: request) != nil
        }

        /// A request that is recognized later: Apple's loading system asks on its own thread, which has no task-locals.
        static func marked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> URLRequest {
            guard let marked = (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return request }
            URLProtocol.setProperty(true, forKey: mark(of: pipeline), in: marked)
            return marked as URLRequest
        }
    #else
        // Foundation on Linux loses a request's properties between URLRequest and NSURLRequest, but asks `canInit` on the thread
        // that resumes the task, where the task-local is visible.
        private static func isMarked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> Bool { false }
        static func marked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> URLRequest { request }
    #endif
}

extension Pipeline {
    /// What copies of a pipeline have in common.
    var identity: ObjectIdentifier { ObjectIdentifier(background) }
}

/// Which class passes its requests to which pipeline.
final class InterceptionRegistry: Sendable {
    /// Equal interceptions share a class; those with their own choice of requests share with none.
    struct Key: Hashable {
        let pipeline: ObjectIdentifier
        let settings: InterceptionSettings.Identity
        let bodyLimit: Int
    }

    private struct State {
        var lastNumber = 0
        var interceptions: [ObjectIdentifier: Interception] = [:]
        var pipelines: Set<ObjectIdentifier> = []
        var classes: [Key: InterceptingURLProtocol.Type] = [:]
    }

    /// The only one in a process, since classes are global.
    static let shared = InterceptionRegistry(limit: 4096)

    private let limit: Int
    private let state = Mutex(State())
    /// Whether there ever was an interception: if there was none, calls take no lock.
    private let mayIntercept = Atomic(false)

    /// - Parameter limit: the most interceptions at a time.
    init(limit: Int) { self.limit = limit }

    /// The class for an interception, an existing one if there is one under `key`; nil if the limit is reached.
    func protocolClass(for interception: Interception, key: Key?) -> InterceptingURLProtocol.Type? {
        state.withLock { state in
            if let key, let known = state.classes[key] { return known }
            guard state.interceptions.count < limit else { return nil }
            // Numbers are never reused: a session that outlives the withdrawal of a pipeline must not meet another one.
            state.lastNumber += 1
            let made = InterceptionSlot.protocolClass(number: state.lastNumber)
            state.interceptions[ObjectIdentifier(made)] = interception
            if let key { state.classes[key] = made }
            state.pipelines.insert(interception.pipelineIdentity)
            mayIntercept.store(true, ordering: .releasing)
            return made
        }
    }

    /// The interception of a class; nil once it was withdrawn.
    func interception(of protocolClass: InterceptingURLProtocol.Type) -> Interception? {
        state.withLock { $0.interceptions[ObjectIdentifier(protocolClass)] }
    }

    /// Whether there are interceptions by a pipeline.
    func intercepts(for pipeline: ObjectIdentifier) -> Bool {
        mayIntercept.load(ordering: .acquiring) && state.withLock { $0.pipelines.contains(pipeline) }
    }

    /// Withdraws all interceptions by a pipeline.
    func withdraw(pipeline: ObjectIdentifier) {
        // Released outside the lock: the end of a pipeline runs code of others.
        let withdrawn = state.withLock { state in
            let withdrawn = state.interceptions.filter { $0.value.pipelineIdentity == pipeline }
            state.pipelines.remove(pipeline)
            for number in withdrawn.keys { state.interceptions[number] = nil }
            state.classes = state.classes.filter { $0.key.pipeline != pipeline }
            return withdrawn
        }
        withExtendedLifetime(withdrawn) {}
    }
}

/// What a session's configuration adds to each request, as far as the loading system leaves it to the protocol.
struct InterceptionSettings: Sendable {
    /// What distinguishes one configuration's settings from another's.
    struct Identity: Hashable, Sendable {
        let headers: [String: String]
        let cookieStorage: ObjectIdentifier?
        let setsCookies: Bool
        let acceptsCookies: Bool
        let requestTimeout: TimeInterval
        let resourceTimeout: TimeInterval
        let cachePolicy: UInt
        let following: [ObjectIdentifier]
    }

    let identity: Identity
    /// The protocol classes after the intercepting one: they load what it cannot.
    let following: [URLProtocol.Type]
    private let fields: SessionFields
    private let fieldsOfHops: SessionFields
    private let cookieStorage: HTTPCookieStorage?
    private let cachePolicy: URLRequest.CachePolicy

    init(_ configuration: URLSessionConfiguration) {
        following = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        fields = SessionFields(configuration)
        fieldsOfHops = SessionFields(configuration, choosesCookies: true)
        cookieStorage = configuration.httpCookieStorage
        cachePolicy = configuration.requestCachePolicy
        identity = Identity(
            headers: SessionFields.texts(configuration.httpAdditionalHeaders),
            cookieStorage: configuration.httpCookieStorage.map { ObjectIdentifier($0) },
            setsCookies: configuration.httpShouldSetCookies,
            acceptsCookies: configuration.httpCookieAcceptPolicy != .never,
            requestTimeout: configuration.timeoutIntervalForRequest,
            resourceTimeout: configuration.timeoutIntervalForResource,
            cachePolicy: configuration.requestCachePolicy.rawValue,
            following: following.map { ObjectIdentifier($0) }
        )
    }

    /// The request with everything that the session would have added; its own fields and settings stay.
    func complete(_ request: URLRequest) -> URLRequest {
        var request = request
        for line in fields.fields(for: request) {
            request.setValue(line.value, forHTTPHeaderField: line.name.rawName)
        }
        // The transport's cookies may be those of other sessions.
        request.httpShouldHandleCookies = false
        let defaultTimeout: TimeInterval = 60
        if request.timeoutInterval == defaultTimeout { request.timeoutInterval = identity.requestTimeout }
        if request.cachePolicy == .useProtocolCachePolicy { request.cachePolicy = cachePolicy }
        return request
    }

    /// The time that a call may take up to its head; nil: only the pipeline's limit.
    func callLimit(within callTimeout: Duration?) -> TimeLimit? {
        let own = callTimeout.map { TimeLimit($0, setting: .pipeline) }
        // A week, Foundation's default, is not a limit that anybody asked for.
        let week: TimeInterval = 604_800
        guard identity.resourceTimeout > 0, identity.resourceTimeout < week else { return own }
        let asked = Duration.seconds(identity.resourceTimeout)
        if let own, own.duration <= asked { return own }
        return TimeLimit(asked, setting: .resource)
    }

    /// The session's cookies, for a request as its caller made it.
    func cookies(for request: URLRequest) -> SessionCookies {
        SessionCookies(
            cookieStorage,
            acceptsCookies: identity.acceptsCookies,
            fields: fields,
            fieldsOfHops: fieldsOfHops,
            for: request
        )
    }
}

/// A class for each number: the loading system makes protocols from a class alone, so what a protocol does must follow from its
/// class, and classes can be made at run time only with generics.
///
/// A number is written in binary as nested types, so the millionth class is twenty types deep. The runtime never frees its data
/// about a class; ``InterceptionRegistry`` limits how many there are.
enum InterceptionSlot {
    /// The class for a number; different for each.
    static func protocolClass(number: Int) -> InterceptingURLProtocol.Type {
        var digits: any SlotDigits.Type = SlotStart.self
        var rest = number.magnitude
        while rest > 0 {
            digits = rest % 2 == 1 ? one(before: digits) : zero(before: digits)
            rest /= 2
        }
        return protocolClass(digits)
    }

    private static func zero<Digits: SlotDigits>(before digits: Digits.Type) -> any SlotDigits.Type {
        SlotZero<Digits>.self
    }

    private static func one<Digits: SlotDigits>(before digits: Digits.Type) -> any SlotDigits.Type {
        SlotOne<Digits>.self
    }

    private static func protocolClass<Digits: SlotDigits>(_ digits: Digits.Type) -> InterceptingURLProtocol.Type {
        SlottedURLProtocol<Digits>.self
    }
}

/// Adds nothing: everything that the loading system calls is in the base class, which is not generic.
private final class SlottedURLProtocol<Digits: SlotDigits>: InterceptingURLProtocol {}

private protocol SlotDigits {}
private enum SlotStart: SlotDigits {}
private enum SlotZero<Rest: SlotDigits>: SlotDigits {}
private enum SlotOne<Rest: SlotDigits>: SlotDigits {}

extension URLSessionConfiguration {
    /// A new default configuration whose sessions send through a pipeline; see ``intercepted(by:matching:bodyLimit:)``.
    public static func holdfast(
        _ pipeline: Pipeline,
        matching: (@Sendable (URLRequest) -> Bool)? = nil
    ) -> URLSessionConfiguration {
        URLSessionConfiguration.default.intercepted(by: pipeline, matching: matching)
    }

    /// A copy of this configuration whose sessions send their http and https requests through a pipeline.
    ///
    /// For code that calls a URLSession and cannot be changed; if it can be, `pipeline.data(for:)` does more for less. Cache,
    /// retries, redirects, hooks and events are the pipeline's. Header fields, cookies, timeouts and cache policy of the
    /// configuration apply as they are now, so change them before, not after. If the pipeline cannot load a task (uploads and
    /// downloads on Linux), the session loads it as usual. `docs/clients/intercepting.md` has a table.
    ///
    /// The same pipeline, settings and limit share one protocol class; each use with `matching` makes one, so make such
    /// configurations once. A class holds its pipeline until ``Pipeline/stopIntercepting()``. There may be 4096 at a time;
    /// beyond that, the copy is not intercepted.
    ///
    /// - Parameters:
    ///   - pipeline: sends the requests. Its transport needs a session without interception; `URLSessionTransport` ensures that
    ///     by itself, whatever configuration it is made from.
    ///   - matching: which requests go through the pipeline; must be quick, and is called from any thread and more than once
    ///     for a request. nil, the default: all.
    ///   - bodyLimit: the most bytes of a response on Linux, where a body is delivered whole; a longer one fails with
    ///     `URLError.dataLengthExceedsMaximum`. 64 MiB by default. Has no effect on Apple systems, where bodies are streamed.
    public func intercepted(
        by pipeline: Pipeline,
        matching: (@Sendable (URLRequest) -> Bool)? = nil,
        bodyLimit: Int = 64 << 20
    ) -> URLSessionConfiguration {
        let copy = (copy() as? URLSessionConfiguration) ?? self
        #if !canImport(Darwin)
            // Foundation on Linux would trap on a value that is not text.
            if let headers = copy.httpAdditionalHeaders { copy.httpAdditionalHeaders = SessionFields.texts(headers) }
        #endif
        // An interception of all requests replaces those of some, so that repeated calls do not accumulate.
        if matching == nil { copy.removeInterceptions { $0.map { $0.pipelineIdentity == pipeline.identity } ?? true } }
        let interception = Interception(
            pipeline: pipeline,
            settings: InterceptionSettings(copy),
            matching: matching,
            bodyLimit: bodyLimit
        )
        let key = InterceptionRegistry.Key(
            pipeline: pipeline.identity,
            settings: interception.settings.identity,
            bodyLimit: bodyLimit
        )
        let registry = InterceptionRegistry.shared
        if let first = registry.protocolClass(for: interception, key: matching == nil ? key : nil) {
            copy.protocolClasses = [first] + (copy.protocolClasses ?? [])
        }
        return copy
    }

    /// Removes the interceptions that ``intercepted(by:matching:bodyLimit:)`` added, or the chosen ones; nil stands for an
    /// interception that was withdrawn.
    func removeInterceptions(where isChosen: (Interception?) -> Bool = { _ in true }) {
        guard let protocolClasses else { return }
        let others = protocolClasses.filter { other in
            guard let ours = other as? InterceptingURLProtocol.Type else { return true }
            return !isChosen(InterceptionRegistry.shared.interception(of: ours))
        }
        if others.count < protocolClasses.count { self.protocolClasses = others }
    }
}

extension Pipeline {
    /// Ends all interceptions by this pipeline and its copies: sessions of their configurations then work without it.
    ///
    /// Requests in progress are still completed by the pipeline. Idempotent; the pipeline itself can still be used, and can
    /// intercept again.
    public func stopIntercepting() {
        InterceptionRegistry.shared.withdraw(pipeline: identity)
    }
}
