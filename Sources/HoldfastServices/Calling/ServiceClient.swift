// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Sends typed requests to one service.
///
/// Create one and keep it. It reads hooks, cache, retrier factory and transport from its service when it is created, so their
/// state lives as long as the client, even if the service computes them each time. Copies share all of these and may be used
/// from any number of tasks.
public struct ServiceClient<Service: HttpService>: Sendable {
    /// The service.
    public let service: Service
    /// The pipeline below all calls; for other requests, `drain()`, or its cache.
    public let pipeline: Pipeline
    let requestHooks: [any RequestHook]
    let checksAttempts: Bool

    /// Creates a client of `service`.
    ///
    /// - Parameters:
    ///   - service: the API.
    ///   - transport: replaces the service's; a mock in tests.
    ///   - cache: replaces the service's.
    ///   - retrierFactory: replaces the service's.
    ///   - hooks: added below those of the service.
    ///   - requestHooks: added below those of the service.
    ///   - configuration: replaces the service's.
    public init(
        _ service: Service,
        transport: (any Transport)? = nil,
        cache: HTTPCache? = nil,
        retrierFactory: (any RetrierFactory)? = nil,
        hooks: [any ServiceHook] = [],
        requestHooks: [any RequestHook] = [],
        configuration: PipelineConfiguration? = nil
    ) {
        self.service = service
        let factory = retrierFactory ?? service.retrierFactory
        pipeline = Pipeline(
            transport: transport ?? service.transport,
            cache: cache ?? service.cache,
            retrierFactory: factory,
            hooks: service.hooks + hooks,
            configuration: configuration ?? service.pipelineConfiguration
        )
        self.requestHooks = service.requestHooks + requestHooks
        checksAttempts = factory.checksAttempts
    }
}

extension ServiceClient {
    /// Sends a request and returns its result together with the response.
    ///
    /// The order is: the request is built; request hooks, first to last; the pipeline, which accepts and decodes; request
    /// hooks, last to first. A failure goes to the request hooks, then `process`, then `mapError`, then the caller. A failure
    /// to build the request goes to all request hooks, and to none of the pipeline's hooks, because they were never scheduled.
    ///
    /// - Throws: what the service's ``HttpService/mapError(_:)`` returns; by default `ServiceError` or, promptly,
    ///   `CancellationError`.
    public func response<R: Request>(to request: R) async throws(Service.RequestError) -> DecodedResponse<R.Result> {
        do {
            return try await run(request)
        } catch {
            throw service.mapError(error)
        }
    }

    /// The shortest limit of a call; that of the retry rules counts only if there is no other.
    private func shortestLimit<R: Request>(of request: R) -> TimeLimit? {
        let options = request.options
        guard let own = request.timeout else { return pipeline.timeLimit(of: options) }
        if let other = options.timeout ?? pipeline.configuration.callTimeout, other < own {
            return pipeline.timeLimit(of: options)
        }
        return TimeLimit(own, setting: .request)
    }

    private func run<R: Request>(_ request: R) async throws -> DecodedResponse<R.Result> {
        let deadline = shortestLimit(of: request).map {
            CallDeadline(pipeline.configuration.clock.now.advanced(by: $0.duration), limit: $0)
        }
        let built: BuiltRequest
        do {
            built = try await build(request, until: deadline)
        } catch let unnamed {
            if unnamed.isCancellation || Task.isCancelled { throw CancellationError() }
            let error = unnamed.refusing(subject(of: request))
            await fail(request, error: error, hooks: requestHooks[...])
            throw error
        }
        let shown = requestHooks.isEmpty ? built.urlRequest : built.showing(built.urlRequest)
        var passed = requestHooks[..<0]
        for (index, hook) in requestHooks.enumerated() {
            if let value = await hook.onSchedule(request, shown) {
                let response = Response(status: .ok, url: shown.url, source: .synthesized)
                let answer = DecodedResponse(value: value, response: response, urlRequest: built.urlRequest)
                await succeed(request, answer: answer, urlRequest: shown, passed: passed)
                return answer
            }
            passed = requestHooks[...index]
        }
        let answer: DecodedResponse<R.Result>
        do {
            answer = try await exchange(request, built: built, deadline: deadline)
        } catch let unnamed {
            let error = unnamed.named(built.urlRequest, hasSwitch: !(service is ProxyService))
            guard !error.isCancellation, !Task.isCancelled else {
                for hook in passed.reversed() { hook.onCancel(request) }
                throw CancellationError()
            }
            await fail(request, error: error, hooks: passed)
            throw error
        }
        if !passed.isEmpty {
            await succeed(request, answer: answer, urlRequest: built.showing(answer.urlRequest), passed: passed)
        }
        return answer
    }

    /// Builds a request within the call's time: a token that never arrives must not block the call forever.
    private func build<R: Request>(_ request: R, until deadline: CallDeadline?) async throws -> BuiltRequest {
        guard let deadline else { return try await build(request) }
        let clock = pipeline.configuration.clock
        do {
            return try await withDeadline(deadline.instant, on: clock, discard: { _ in }) { try await build(request) }
        } catch let error as ServiceError where error.code == .timeout && clock.now >= deadline.instant {
            throw ServiceError(
                .deadlineExceeded,
                deadline.limit.timedOut(
                    "before its request was built",
                    advice: "Allow more time, or find out what its header fields waited for."
                ),
                cause: error,
                progress: .notSent
            )
        }
    }

    private func succeed<R: Request>(
        _ request: R,
        answer: DecodedResponse<R.Result>,
        urlRequest: URLRequest,
        passed: ArraySlice<any RequestHook>
    ) async {
        for hook in passed.reversed() {
            await hook.onSuccess(request, urlRequest, result: answer.value, response: answer.response)
        }
    }

    private func fail<R: Request>(_ request: R, error: any Error, hooks: ArraySlice<any RequestHook>) async {
        for hook in hooks.reversed() { await hook.onFailure(request, error) }
        service.process(error)
    }
}

extension ServiceClient {
    /// Sends the built request, and follows a redirect that the request's `handle` asks for.
    func exchange<R: Request>(
        _ request: R,
        built: BuiltRequest,
        deadline: CallDeadline?
    ) async throws -> DecodedResponse<R.Result> {
        var built = built
        var origin: BuiltRequest? = built
        var redirects = 0
        while true {
            let notes = CallNotes<R.Result>(built.urlRequest)
            defer { notes.end() }
            var options = options(of: request, built: built, origin: origin, deadline: deadline, notes: notes)
            options.renewal = origin.map { bringingUpToDate(request, built: $0, isFollowing: redirects > 0) }
            do {
                var response = try await pipeline.send(built.urlRequest, body: built.body, options: options)
                let value = try await value(of: &response, request: request, deadline: deadline, notes: notes)
                return DecodedResponse(value: value, response: response, urlRequest: notes.urlRequest)
            } catch {
                guard !error.isCancellation, !Task.isCancelled, let refused = notes.refused else { throw error }
                switch request.handle(error, response: refused) {
                case .error(let error): throw error
                case .redirect(let url):
                    guard redirects < 16,
                        let following = built.redirected(to: url, withholding: options.credentialFields)
                    else { throw error }
                    redirects += 1
                    if following.isForeign { origin = nil }
                    built = following.request
                }
            }
        }
    }

    private func options<R: Request>(
        of request: R,
        built: BuiltRequest,
        origin: BuiltRequest?,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) -> CallOptions {
        var options = request.options
        if let deadline {
            options.setTimeout(
                pipeline.configuration.clock.now.duration(to: deadline.instant),
                of: deadline.limit
            )
        }
        if options.operationName == nil { options.operationName = CallLogger.operationName(of: request) }
        options.credentialFields += built.credentialFields
        options.acceptance = acceptance(of: request, deadline: deadline, notes: notes)
        // If the call went on to another origin, the pipeline sees that origin as its first.
        if origin == nil || request.authorizationRequirement == .none { options.usesAuthorization = false }
        if origin == nil { options.isForeignHop = true }
        options.prepare.append { urlRequest, _ in notes.sent(urlRequest) }
        return options
    }

    /// Before a retry and after a redirect, builds the head again and sends what differs: there may be a new token by then.
    ///
    /// Only fields that are as they were built are updated; hooks changed the others on purpose. After a redirect none are
    /// added.
    ///
    /// - isFollowing: whether the request's `handle` redirected the call.
    private func bringingUpToDate<R: Request>(_ request: R, built: BuiltRequest, isFollowing: Bool) -> PrepareStep {
        { urlRequest, context in
            let isRedirected = isFollowing || context.redirectCount > 0
            guard context.attempt > 1 || isRedirected else { return }
            let newest = try await newestHead(of: request, contentType: built.contentType, context)
            let before = built.urlRequest.allHTTPHeaderFields ?? [:]
            let after = newest.allHTTPHeaderFields ?? [:]
            for name in Set(before.keys).union(after.keys) where before[name] != after[name] {
                // The content goes out as it was built, and a boundary in its type belongs to it. The key says that this is the same
                // operation, which is why it may be sent again (draft-ietf-httpapi-idempotency-key-header §2.2).
                if [.contentType, .idempotencyKey].contains(FieldName(name)) { continue }
                guard urlRequest.value(forHTTPHeaderField: name) == before[name], before[name] != nil || !isRedirected
                else { continue }
                // Another origin does not get newer values; it gets again what it was first sent.
                if context.isForeignHop, !NonCredentialFields.contains(named: name) { continue }
                urlRequest.setValue(after[name], forHTTPHeaderField: name)
            }
            // Whoever redirects decides where to.
            guard !isRedirected, !context.isForeignHop else { return }
            urlRequest.takeQuery(of: newest, inPlaceOf: built.urlRequest)
        }
    }
}

extension ServiceClient {
    /// The head for a further attempt, within the time of those who wait for it: a token that never arrives must not block them
    /// forever.
    private func newestHead<R: Request>(
        of request: R,
        contentType: String?,
        _ context: CallContext
    ) async throws -> URLRequest {
        guard let deadline = context.deadline else { return try await head(of: request, contentType: contentType) }
        let limit = pipeline.timeLimit(of: context.options)
        return try await withDeadline(
            deadline,
            on: context.clock,
            movedTo: { _ in context.deadline },
            failure: ServiceError(
                .deadlineExceeded,
                limit.timedOut(
                    "before its request was built again",
                    advice: "Allow more time, or find out what its header fields waited for."
                ),
                progress: .notSent
            ),
            discard: { _ in }
        ) {
            try await head(of: request, contentType: contentType)
        }
    }
}

extension URLRequest {
    /// Takes over the query and the user of a newer request in place of those of an earlier one: they may contain a token.
    ///
    /// What others appended to the earlier query stays. Nothing is taken over if the rest of the URL differs, or if the earlier
    /// query is no longer there.
    fileprivate mutating func takeQuery(of newer: URLRequest, inPlaceOf earlier: URLRequest) {
        guard let newest = newer.url, let former = earlier.url, newest != former else { return }
        if takeQuery(of: newest, inPlaceOf: former) { return }
        // A cache sends the URL in the spelling of its key.
        guard let newestAsKey = newest.spelledAsKey, let formerAsKey = former.spelledAsKey else { return }
        _ = takeQuery(of: newestAsKey, inPlaceOf: formerAsKey)
    }

    /// - Returns: whether the earlier query was there to be replaced.
    private mutating func takeQuery(of newer: URL, inPlaceOf earlier: URL) -> Bool {
        guard let own = url?.divided, let before = earlier.divided, let after = newer.divided,
            own.place == before.place, after.place == before.place, own.user == before.user,
            own.query == before.query || own.query.hasPrefix(before.query + "&") || before.query.isEmpty,
            var parts = URLComponents(url: newer, resolvingAgainstBaseURL: true)
        else { return false }
        let added = own.query.dropFirst(before.query.count).drop { $0 == "&" }
        let query = [after.query, String(added)].filter { !$0.isEmpty }.joined(separator: "&")
        parts.percentEncodedQuery = query.isEmpty ? nil : query
        if let url = parts.url { self.url = url }
        return true
    }
}

extension URL {
    /// The URL as a cache sends it: in the spelling of its key, with its user; nil if it is no http or https URL.
    fileprivate var spelledAsKey: URL? {
        guard let target = try? TargetURI(absoluteString) else { return nil }
        let user = target.userinfo.map { $0 + "@" } ?? ""
        return URL(string: "\(target.scheme)://\(user)" + target.canonical.dropFirst(target.scheme.count + 3))
    }

    /// The URL without user and query, the user, and the query.
    fileprivate var divided: (place: String, user: String, query: String)? {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
        let user = "\(parts.percentEncodedUser ?? "")\n\(parts.percentEncodedPassword ?? "")"
        let query = parts.percentEncodedQuery ?? ""
        (parts.percentEncodedUser, parts.percentEncodedPassword, parts.percentEncodedQuery) = (nil, nil, nil)
        parts.fragment = nil
        return parts.string.map { ($0, user, query) }
    }
}

extension ServiceClient {
    /// Checks and decodes a response within the chain, and remembers the result.
    func acceptance<R: Request>(of request: R, deadline: CallDeadline?, notes: CallNotes<R.Result>) -> Acceptance {
        let checkRefresh: @Sendable (inout Response) async throws -> Void = { response in
            if let request = request as? any ContentChecking {
                try await request.check(&response)
            } else if !request.acceptedStatusCodes.contains(response.status.rawValue) {
                // Custom code of the request may be meant to see the content of one response only.
                throw ServiceError.refused(response, expected: request.acceptedStatusCodes)
            }
        }
        var acceptance = Acceptance { response in
            // What arrives after the call is for a cache.
            if notes.isOver { return try await checkRefresh(&response) }
            try await value(of: &response, request: request, deadline: deadline, notes: notes)
        }
        acceptance.checksAttempts = request.options.retrierFactory?.checksAttempts ?? checksAttempts
        acceptance.checkRefresh = checkRefresh
        return acceptance
    }

    /// Reads and decodes a response within the call's time.
    ///
    /// A decoded value stays valid for the whole call, unless a hook replaced the response.
    @discardableResult
    private func value<R: Request>(
        of response: inout Response,
        request: R,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) async throws -> R.Result {
        if let value = notes.value(of: response) { return value }
        do {
            let arrived = response
            let (result, taken) = try await takingContent(
                of: arrived,
                until: deadline,
                on: pipeline.configuration.clock
            ) { () -> (Result<R.Result, any Error>, Response) in
                var taken = arrived
                do {
                    return (.success(try await request.receive(&taken)), taken)
                } catch {
                    return (.failure(error), taken)
                }
            }
            response = taken
            let value = try result.get()
            notes.decoded(value, response: response)
            return value
        } catch {
            notes.refused(response)
            throw error
        }
    }
}

/// A request that can check a response without consuming it.
protocol ContentChecking: Request {
    /// Throws if the response would be refused; leaves a body that can be read.
    func check(_ response: inout Response) async throws
}
