// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    private import Synchronization
    internal import Tracing

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
#endif
