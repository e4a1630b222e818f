// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    private import Synchronization
    internal import Tracing

    /// The span of a call that is under way, found through the task's context wherever the call's work is done.
    final class CallTrace: Sendable {
        let callID: CallID
        private let span: any Span
        private let state = Mutex((sends: 0, isOver: false))

        init(_ span: any Span, _ callID: CallID) {
            self.span = span
            self.callID = callID
        }

        /// The number of the sending that begins now; the first is 1.
        func nextSend() -> Int {
            state.withLock { state in
                state.sends += 1
                return state.sends
            }
        }

        /// Puts an event on the span, unless that has ended: an exchange may outlive the call that began it.
        func add(_ name: String, _ attributes: SpanAttributes) {
            guard !state.withLock({ $0.isOver }) else { return }
            span.addEvent(SpanEvent(name: name, attributes: attributes))
        }

        /// Ends the span; only the first time counts.
        func end() {
            let isFirst = state.withLock { state in
                defer { state.isOver = true }
                return !state.isOver
            }
            if isFirst { span.end() }
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
