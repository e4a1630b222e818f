// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Sends requests through a URLSession.
///
/// The response is returned at its head, and its body is streamed after it, read ahead as the platform delivers it: URLSession
/// cannot make a server wait for a reader without breaking the transfer on Linux, so bytes that have not been read yet are kept
/// in memory, and beyond that in an unlinked temporary file, within ``Limits``. Redirects are returned, never followed; caches
/// below the pipeline are not used; a 401 is returned as it is, without trying stored credentials.
///
/// Request bodies are sent from memory or from a file: a stream is read to its end before it is sent. On Linux, a file that
/// changes its length while it is sent ends the exchange; the part that arrived is never taken for the whole. Foundation joins
/// response field lines of one name with a comma and changes the case of some names. If the platform decodes a content coding,
/// ``Response/contentDecoded`` is true. Interim (1xx) responses are reported on Linux; Apple's URLSession does not report them.
/// `docs/clients/urlsession.md` lists what else the platforms can and cannot do.
public final class URLSessionTransport: Transport {
    let session: URLSession
    /// The delegate of our own session; nil if the session is somebody else's.
    let bridge: URLSessionBridge?
    private let sessionFields: SessionFields
    private let limits: Limits
    private let requestTimeout: TimeInterval
    private let waitsForConnectivity: Bool
    private let isInvalidated = Mutex(false)

    /// A transport that makes its own session.
    ///
    /// - Parameters:
    ///   - configuration: copied; its header fields, cookies, timeouts, protocol classes and the rest are kept, but not the
    ///     classes that hand requests to a pipeline. Its `urlCache` is dropped and its `requestCachePolicy` set to
    ///     `.reloadIgnoringLocalCacheData`, since the pipeline caches. Those of its `httpAdditionalHeaders` that may hold a
    ///     credential, such as Authorization or X-Api-Key, are not sent if a redirect leads to another origin. An ephemeral one
    ///     by default.
    ///   - limits: the limits of an exchange.
    public init(configuration: URLSessionConfiguration = .ephemeral, limits: Limits = Limits()) {
        let own = (configuration.copy() as? URLSessionConfiguration) ?? configuration
        own.removeInterceptions()
        own.urlCache = nil
        own.requestCachePolicy = .reloadIgnoringLocalCacheData
        let headers = SessionFields.texts(configuration.httpAdditionalHeaders)
        own.httpAdditionalHeaders = headers
        #if canImport(Darwin)
            let sessionFields = SessionFields(own)
        #else
            let sessionFields = SessionFields(own, choosesCookies: true)
            // Foundation on Linux would replace the request's own Cookie field and ignore `httpShouldHandleCookies`.
            own.httpShouldSetCookies = false
            own.timeoutIntervalForRequest = URLSessionTransport.allowed(configuration.timeoutIntervalForRequest)
        #endif
        // Fields that must not be sent everywhere are put into each request that may have them: a session adds its fields to all.
        own.httpAdditionalHeaders = headers.filter { name, _ in
            FieldName(name).map { !sessionFields.binds($0) } ?? true
        }
        self.sessionFields = sessionFields
        let bridge = URLSessionBridge()
        #if canImport(Darwin)
            let queue = OperationQueue()
            queue.name = "holdfast.url-session"
            queue.maxConcurrentOperationCount = 1
            queue.qualityOfService = .userInitiated
        #else
            let queue = DelegateQueue()
        #endif
        self.bridge = bridge
        session = URLSession(configuration: own, delegate: bridge, delegateQueue: queue)
        self.limits = limits
        requestTimeout = configuration.timeoutIntervalForRequest
        waitsForConnectivity = URLSessionTransport.waitsForConnectivity(own)
    }

    /// A transport over an existing session, which is not invalidated; on Apple systems its cache, if it has one, still works.
    ///
    /// On Apple systems, bodies are streamed through a delegate of each task. The session's own delegate is still asked about
    /// certificates and proxies, but not called for anything else. Do not invalidate the session while the transport is in use.
    /// The session adds its `httpAdditionalHeaders` to everything that it sends. If a redirect leads to another origin, those
    /// that may hold a credential are overridden in the request with an empty value.
    ///
    /// On Linux, this is ``init(configuration:limits:)`` with the session's configuration, so requests have connections of their
    /// own: Foundation passes neither head nor body to a task's delegate there, and its lookup in the session's cache, which
    /// never has a response, ends the process if a task is cancelled meanwhile.
    public convenience init(session: URLSession, limits: Limits = Limits()) {
        #if canImport(Darwin)
            self.init(over: session, limits: limits)
        #else
            self.init(configuration: session.configuration, limits: limits)
        #endif
    }

    #if canImport(Darwin)
        private init(over session: URLSession, limits: Limits) {
            self.session = session
            bridge = nil
            let configuration = session.configuration
            sessionFields = SessionFields(configuration)
            self.limits = limits
            requestTimeout = configuration.timeoutIntervalForRequest
            waitsForConnectivity = URLSessionTransport.waitsForConnectivity(configuration)
        }
    #endif

    deinit {
        guard bridge != nil, !isInvalidated.withLock({ $0 }) else { return }
        FoundationQueue.perform { [session] in session.finishTasksAndInvalidate() }
    }

    /// Ends the session that this transport made once its running exchanges have ended; later ones fail. Idempotent.
    public func invalidate() {
        guard bridge != nil else { return }
        FoundationQueue.perform { [self] in
            let isFirst = isInvalidated.withLock { isInvalidated in
                defer { isInvalidated = true }
                return !isInvalidated
            }
            if isFirst { session.finishTasksAndInvalidate() }
        }
    }

    public var enforcesDeadline: Bool { true }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        sessionFields.fields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        sessionFields.fields(for: request, isForeignHop: context.isForeignHop)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try Task.checkCancellation()
        guard let url = request.url else {
            throw ServiceError(.badRequest, "The request has no URL. Set one.", progress: .notSent)
        }
        // Foundation on Linux would connect for ftp.
        guard ["http", "https"].contains(url.scheme?.lowercased()) else {
            throw TransferFailure.serviceError(
                for: URLError(.unsupportedURL),
                url: url,
                progress: .notSent,
                connectionReused: false
            )
        }
        try request.checkHead()
        let upload = try await prepare(request, body: body, context: context)
        var limits = limits
        // It becomes a file anyway.
        if context.options.isDownload, limits.bodyOnDisk > 0 { limits.bodyOnDisk = .max }
        let idleLimit = idleLimit(of: request)
        let exchange = URLSessionExchange(
            upload,
            limits: limits,
            idleLimit: idleLimit,
            now: { SystemClock().now },
            onInterim: { context.report(interim: $0) }
        )
        let presented = presentedFields(of: upload.request, context)
        let isIdempotent = context.options.isIdempotent ?? RequestMethod(request).isIdempotent
        let watches = watch(exchange, idleLimit: idleLimit, context: context)
        defer {
            for watch in watches { watch.cancel() }
        }
        let head = try await exchange.head { [self] in
            try makeTask(for: upload, isIdempotent: isIdempotent, exchange)
        }
        var response = response(head, to: request, url: url, exchange: exchange)
        // Cookies change during calls, and whose response this is depends on those that were sent.
        let isCertain =
            addsCookiesItself
            || (!sessionFields.mayReplaceCookies(of: upload.request)
                && presentedFields(of: upload.request, context) == presented)
        response.presentation = isCertain ? .presented(.fields(presented)) : .hidden
        return response
    }

    /// The request's fields as they are sent, with those that the session adds.
    private func presentedFields(of request: URLRequest, _ context: CallContext) -> HeaderFields {
        var own = HeaderFields(request.allHTTPHeaderFields ?? [:])
        if bridge == nil, context.isForeignHop {
            own.removeAll { $0.value == URLSessionTransport.overridingValue && sessionFields.binds($0.name) }
        }
        return sessionFields.fields(
            for: request,
            withStoredCookies: !addsCookiesItself,
            isForeignHop: context.isForeignHop
        )
        .merging(own)
    }

    /// The value of a field that somebody else's session must not add to a request.
    private static let overridingValue = ""

    /// The request with the fields that our own session does not add itself, and without those that a foreign one would add to a
    /// hop to another origin.
    private func completed(_ request: URLRequest, context: CallContext) -> URLRequest {
        var request = request
        let bound = sessionFields.bound.isEmpty ? HeaderFields() : sessionFields.boundFields(for: request)
        #if !canImport(Darwin)
            if let cookie = sessionFields.cookie(for: request) {
                request.setValue(cookie, forHTTPHeaderField: "Cookie")
            }
        #endif
        if bridge != nil, !context.isForeignHop {
            for line in bound { request.setValue(line.value, forHTTPHeaderField: line.name.rawName) }
        } else if bridge == nil, context.isForeignHop {
            for line in bound {
                request.setValue(URLSessionTransport.overridingValue, forHTTPHeaderField: line.name.rawName)
            }
        }
        return request
    }

    /// Whether the stored cookies to be sent are already in the request, so that the session adds none.
    private var addsCookiesItself: Bool {
        #if canImport(Darwin)
            false
        #else
            true
        #endif
    }

    private func prepare(
        _ request: URLRequest,
        body: RequestBody,
        context: CallContext
    ) async throws -> RequestUpload {
        let prepared = completed(request, context: context)
        let memoryLimit = limits.requestBodyInMemory
        guard let deadline = context.attemptDeadline else {
            return try await RequestUpload.prepare(prepared, body: body, memoryLimit: memoryLimit)
        }
        guard context.clock.now < deadline else { throw context.attemptTimeout(progress: .notSent) }
        switch body.form {
        case .none, .bytes, .requestStream:
            return try await RequestUpload.prepare(prepared, body: body, memoryLimit: memoryLimit)
        case .file, .factory, .oneShot:
            do {
                return try await withDeadline(deadline, on: context.clock, discard: { _ in }) {
                    try await RequestUpload.prepare(prepared, body: body, memoryLimit: memoryLimit)
                }
            } catch let error as ServiceError where error.code == .timeout {
                throw context.attemptTimeout(progress: .notSent)
            }
        }
    }

    private func makeTask(
        for upload: RequestUpload,
        isIdempotent: Bool,
        _ exchange: URLSessionExchange
    ) throws -> URLSessionTask {
        #if !canImport(Darwin)
            // libcurl would drop the content, or announce a file's length and send nothing of it.
            if upload.hasContent, RequestMethod(upload.request) == .head {
                throw TransferFailure.noContent.error(progress: .notSent)
            }
        #endif
        // Making a task traps once the session is invalidated, so a lock separates the two.
        let task: URLSessionTask? = isInvalidated.withLock { isInvalidated in
            isInvalidated ? nil : rawTask(for: upload, isIdempotent: isIdempotent, exchange)
        }
        guard let task else {
            throw ServiceError(
                .unsupported,
                "The transport was invalidated; make a new one.",
                progress: .notSent
            )
        }
        return task
    }

    /// Tasks that end the exchange at its deadline, and when URLSession's own timeout should have.
    private func watch(
        _ exchange: URLSessionExchange,
        idleLimit: IdleLimit?,
        context: CallContext
    ) -> [Task<Void, Never>] {
        var watches: [Task<Void, Never>] = []
        if let deadline = context.attemptDeadline {
            let clock = context.clock
            watches.append(
                Task {
                    guard (try? await clock.sleep(until: deadline)) != nil else { return }
                    exchange.timeOut { context.attemptTimeout(progress: $0) }
                }
            )
        }
        if !waitsForConnectivity, let idleLimit {
            // This guards against URLSession's own silence, so it uses real time, whatever the pipeline's clock.
            let clock = SystemClock()
            watches.append(
                Task {
                    while true {
                        let end = exchange.lastActivity.advanced(by: idleLimit.duration)
                        guard clock.now < end else {
                            return exchange.timeOut { ServiceError(.timeout, idleLimit.message, progress: $0) }
                        }
                        guard (try? await clock.sleep(until: end)) != nil else { return }
                    }
                }
            )
        }
        return watches
    }

    /// How long nothing may happen before the head: the request's timeout, or the session's if the request has the default.
    private func idleLimit(of request: URLRequest) -> IdleLimit? {
        let defaultTimeout: TimeInterval = 60
        let isOwn = request.timeoutInterval != defaultTimeout
        let seconds = isOwn ? request.timeoutInterval : requestTimeout
        guard seconds > 0, seconds < 1e9 else { return nil }
        return IdleLimit(
            duration: .seconds(seconds),
            setting: isOwn ? "URLRequest.timeoutInterval" : "URLSessionConfiguration.timeoutIntervalForRequest"
        )
    }

    private func response(
        _ response: HTTPURLResponse,
        to request: URLRequest,
        url: URL,
        exchange: URLSessionExchange
    ) -> Response {
        let head = response.head
        let isDecoded = ContentCodings.areUndone(head.fields.values(of: "Content-Encoding"))
        let hasNoBody =
            request.httpMethod?.uppercased() == "HEAD" || head.status == 204 || head.status == 304
            || exchange.hasEndedEmpty
        let length = isDecoded ? nil : response.contentLength
        return Response(
            status: head.status,
            fields: head.fields,
            body: hasNoBody ? ResponseBody() : ResponseBody(URLSessionBodySource(exchange), length: length),
            url: response.url ?? url,
            contentDecoded: isDecoded
        )
    }

    #if !canImport(Darwin)
        /// The timeout that Foundation gets: it cuts off fractions, so that less than a second is none at all, and ends the process
        /// for times that are no integer of milliseconds. The exact limit is the transport's own.
        static func allowed(_ timeout: TimeInterval) -> TimeInterval {
            timeout > 0 ? min(timeout.rounded(.up), 1e9) : 1e9
        }
    #endif

    private static func waitsForConnectivity(_ configuration: URLSessionConfiguration) -> Bool {
        #if canImport(Darwin)
            configuration.waitsForConnectivity
        #else
            false
        #endif
    }
}

extension URLSessionTransport {
    /// The limits of a transport, each for one exchange.
    public struct Limits: Sendable, Hashable {
        /// The most bytes of a response that wait in memory for their reader; 8 MiB by default.
        public var bodyInMemory = 8 << 20
        /// The most bytes of a response that wait in a temporary file, in addition to those in memory; 1 GiB by default.
        ///
        /// A response that exceeds it ends with ``ServiceError`` `.bodyTooLarge`, unless it is downloaded to a file, for which
        /// there is no limit. 0: a file is never made.
        public var bodyOnDisk = 1 << 30
        /// The most bytes of a streamed request body that are collected in memory; longer ones go to a temporary file. 1 MiB by
        /// default.
        public var requestBodyInMemory = 1 << 20

        /// The defaults.
        public init() {}
    }
}

extension URLSessionTransport {
    /// The task that sends `upload` and reports events to `exchange`; traps once the session is invalidated.
    func rawTask(
        for upload: RequestUpload,
        isIdempotent: Bool,
        _ exchange: URLSessionExchange
    ) -> URLSessionTask {
        #if !canImport(Darwin)
            if !upload.hasContent, !isIdempotent { return unsharedTask(for: upload, exchange: exchange) }
        #endif
        let task = delegatedTask(for: upload)
        let own = bridge ?? URLSessionBridge()
        own.attach(exchange, to: task)
        // The session of somebody else has a delegate of its own.
        if bridge == nil { task.delegate = own }
        return task
    }

    private func delegatedTask(for upload: RequestUpload) -> URLSessionTask {
        #if canImport(Darwin)
            // Never on Linux, where an upload from a file traps if its exchange ends while the file is being read.
            if let file = upload.file { return session.uploadTask(with: upload.request, fromFile: file.url) }
            return session.dataTask(with: upload.request)
        #else
            return session.dataTask(with: upload.streamedRequest)
        #endif
    }

    #if !canImport(Darwin)
        /// A task on its own connection.
        ///
        /// If a reused connection breaks before a response, libcurl sends a request without content a second time by itself,
        /// whatever the method; on a new connection, it does not. Whether something may be sent twice is for the pipeline to
        /// decide.
        private func unsharedTask(for upload: RequestUpload, exchange: URLSessionExchange) -> URLSessionTask {
            let bridge = URLSessionBridge()
            let single = URLSession(
                configuration: session.configuration,
                delegate: bridge,
                delegateQueue: session.delegateQueue
            )
            let task = single.dataTask(with: upload.streamedRequest)
            bridge.attach(exchange, to: task)
            single.finishTasksAndInvalidate()
            return task
        }
    #endif
}
