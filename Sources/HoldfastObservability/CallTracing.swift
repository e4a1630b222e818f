// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    internal import HoldfastSemantics
    private import Synchronization
    internal import Tracing

    #if canImport(FoundationNetworking)
        internal import Foundation
        internal import FoundationNetworking
    #else
        internal import Foundation
    #endif

    /// Opens a span for each call and one for each send, by OpenTelemetry's conventions for HTTP.
    ///
    /// Spans end in the function that began them, so none can be left open or ended twice.
    struct CallTracing: CallInterceptor {
        private let tracer: (any Tracer)?
        private let options: ObserverOptions
        private let cleaner: TextCleaner
        private let recent = RecentCalls()

        init(_ tracer: (any Tracer)?, options: ObserverOptions) {
            self.tracer = tracer
            self.options = options
            cleaner = TextCleaner(shownArguments: options.shownArguments)
        }

        func interceptCall(
            _ request: URLRequest,
            context: CallContext,
            proceed: () async throws -> Response
        ) async throws -> Response {
            let tracer = tracer ?? InstrumentationSystem.tracer
            let span: any Span = tracer.startSpan(name(of: request, context), ofKind: .internal)
            let trace = CallTrace(span, callID: context.callID)
            defer { trace.end() }
            describe(request, context: context, on: span)
            var inner = span.context
            inner.callTrace = trace
            do {
                let response = try await ServiceContext.withValue(inner) { try await proceed() }
                if !span.isRecording { return response }
                span.attributes["holdfast.source"] = response.source.word
                if let decision = response.cacheDecision {
                    span.attributes["holdfast.cache.outcome"] = decision.outcome.word
                    span.attributes["holdfast.cache.reason"] = decision.reason.code
                }
                describe(response, on: span)
                return response
            } catch {
                describe(error, of: request, on: span)
                throw error
            }
        }

        func interceptSend(
            _ request: URLRequest,
            context: CallContext,
            proceed: (URLRequest) async throws -> Response
        ) async throws -> Response {
            let tracer = tracer ?? InstrumentationSystem.tracer
            // A body that is resumed after its call is read in its reader's task.
            let trace = ServiceContext.current?.callTrace.flatMap { $0.callID == context.callID ? $0 : nil }
            let span: any Span = tracer.startSpan(name(of: request, context), ofKind: .client)
            defer { span.end() }
            describe(request, context: context, on: span)
            let resends = (trace?.nextSend() ?? context.attempt + 1) - 1
            if resends > 0 { span.attributes["http.request.resend_count"] = resends }
            if let trace { recent.note(trace.callID, context: trace.context) }
            var traced = request
            tracer.inject(span.context, into: &traced, using: RequestInjector())
            do {
                let response = try await ServiceContext.withValue(span.context) { try await proceed(traced) }
                describe(response, on: span)
                return response
            } catch {
                describe(outcome(of: error, context), of: request, on: span)
                throw error
            }
        }

        /// Adds what the pipeline decided between the sends, as events of the call's span.
        func note(_ event: ServiceEvent) {
            guard let trace = ServiceContext.current?.callTrace, trace.callID == event.callID else { return }
            if let leader = event.leader, let context = recent[leader] { trace.link(to: context) }
            switch event.name {
            case .retryScheduled, .resendScheduled, .retriesStopped, .gateAwaited, .paceAwaited, .budgetAwaited,
                .connectivityAwaited, .gateClosed, .hedgeStarted, .redirected, .circuitOpened, .circuitClosed,
                .storeFailed,
                .backgroundRevalidationStarted:
                break
            default: return
            }
            var attributes = SpanAttributes()
            if let attempt = event.attempt { attributes["holdfast.attempt"] = attempt }
            if let delay = event.delay { attributes["holdfast.delay"] = delay.inSeconds }
            if let retryClass = event.retryClass { attributes["holdfast.retry.class"] = Labels.retryClass(retryClass) }
            if let reason = event.stopReason { attributes["holdfast.stop_reason"] = reason.rawValue }
            if let code = event.errorCode { attributes["error.type"] = code }
            if let host = event.redirectTarget?.host { attributes["holdfast.redirect.host"] = host }
            trace.add("holdfast.\(event.name)", attributes: attributes)
        }

        /// A pipeline that limits attempts cancels a transport whose time is up; in the trace that is a timeout.
        private func outcome(of error: any Error, _ context: CallContext) -> any Error {
            guard error is CancellationError, let deadline = context.attemptDeadline, context.clock.now >= deadline
            else {
                return error
            }
            return ServiceError(.timeout, "The attempt's time is up.")
        }

        private func name(of request: URLRequest, _ context: CallContext) -> String {
            let method = Labels.method(RequestMethod(rawValue: request.httpMethod ?? "GET"))
            let known = method == Labels.other ? "HTTP" : method
            return context.options.operationName.map { "\(known) \($0)" } ?? known
        }

        private func describe(_ request: URLRequest, context: CallContext, on span: any Span) {
            guard span.isRecording else { return }
            let original = request.httpMethod ?? "GET"
            var attributes = SpanAttributes()
            let method = Labels.method(RequestMethod(rawValue: original))
            attributes["http.request.method"] = method
            if method == Labels.other { attributes["http.request.method_original"] = String(original.prefix(64)) }
            if let operation = context.options.operationName { attributes["holdfast.operation"] = operation }
            if let url = request.url.map({ RedactedURL($0) }) {
                attributes["url.full"] = url.text(showing: options.shownArguments)
                if let host = url.host { attributes["server.address"] = host }
                if let port = url.port { attributes["server.port"] = port }
            }
            span.updateAttributes { $0.merge(attributes) }
        }

        private func describe(_ response: Response, on span: any Span) {
            guard span.isRecording else { return }
            span.attributes["http.response.status_code"] = response.status.rawValue
            guard let type = Labels.errorType(response.status, code: nil) else { return }
            span.attributes["error.type"] = type
            span.setStatus(SpanStatus(code: .error))
        }

        private func describe(_ error: any Error, of request: URLRequest, on span: any Span) {
            guard span.isRecording else { return }
            let ours = error as? ServiceError
            if let status = ours?.response?.status { span.attributes["http.response.status_code"] = status.rawValue }
            let code = error is CancellationError ? "cancelled" : (ours?.code ?? .other).description
            span.attributes["error.type"] = Labels.errorType(ours?.response?.status, code: code) ?? code
            // The error itself is not recorded, because its text may contain URLs and fields.
            let message = ours.map { cleaner.clean($0.message, of: request.url.map { RedactedURL($0) }) }
            span.setStatus(SpanStatus(code: .error, message: message ?? String(describing: type(of: error))))
        }
    }

    /// The span of a call in progress, found through the task's context wherever the call's work is done.
    final class CallTrace: Sendable {
        let callID: CallID
        private let span: any Span
        /// The context of the call's span, for its children.
        var context: ServiceContext { span.context }
        private let state = Mutex((sends: 0, isOver: false))

        init(_ span: any Span, callID: CallID) {
            self.span = span
            self.callID = callID
        }

        /// The number of the send that begins now; the first is 1.
        func nextSend() -> Int {
            state.withLock { state in
                state.sends += 1
                return state.sends
            }
        }

        /// Adds an event to the span, unless it has ended: an exchange may outlive the call that began it.
        func add(_ name: String, attributes: SpanAttributes) {
            guard !state.withLock({ $0.isOver }) else { return }
            span.addEvent(SpanEvent(name: name, attributes: attributes))
        }

        /// Links the span to that of another call.
        func link(to context: ServiceContext) {
            guard !state.withLock({ $0.isOver }) else { return }
            span.addLink(SpanLink(context: context, attributes: [:]))
        }

        /// Ends the span; only the first call counts.
        func end() {
            let isFirst = state.withLock { state in
                defer { state.isOver = true }
                return !state.isOver
            }
            if isFirst { span.end() }
        }
    }

    /// The contexts of the last calls that sent something, for the calls that share their exchange.
    final class RecentCalls: Sendable {
        private struct State {
            var contexts: [CallID: ServiceContext] = [:]
            var order: [CallID] = []
            var oldest = 0
        }

        static let limit = 1024
        private let state = Mutex(State())

        subscript(id: CallID) -> ServiceContext? { state.withLock { $0.contexts[id] } }

        func note(_ id: CallID, context: ServiceContext) {
            state.withLock { state in
                guard state.contexts.updateValue(context, forKey: id) == nil else { return }
                if state.order.count < RecentCalls.limit { return state.order.append(id) }
                state.contexts[state.order[state.oldest]] = nil
                state.order[state.oldest] = id
                state.oldest = (state.oldest + 1) % RecentCalls.limit
            }
        }
    }

    enum CallTraceKey: ServiceContextKey {
        typealias Value = CallTrace
    }

    extension ServiceContext {
        var callTrace: CallTrace? {
            get { self[CallTraceKey.self] }
            set { self[CallTraceKey.self] = newValue }
        }
    }

    /// Writes a trace's fields, such as `traceparent`, to a request.
    struct RequestInjector: Injector {
        func inject(_ value: String, forKey key: String, into carrier: inout URLRequest) {
            carrier.setValue(value, forHTTPHeaderField: key)
        }
    }
#endif
