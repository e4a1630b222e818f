// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ServiceEvent {
    /// What happened.
    public struct Name: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, fit for a metric label.
        public let description: String

        /// A name of one's own, for events of hooks and transports outside this package.
        public init(_ description: String) {
            self.description = description
        }

        /// A call came in.
        public static let callStarted = Name("call-started")
        /// A call ended with a response or an error.
        public static let callEnded = Name("call-ended")
        /// An attempt is about to be sent.
        public static let attemptStarted = Name("attempt-started")
        /// An attempt got a response head or an error.
        public static let attemptEnded = Name("attempt-ended")
        /// Another attempt will follow after ``ServiceEvent/delay``; class, status or error say why.
        public static let retryScheduled = Name("retry-scheduled")
        /// Another attempt will follow that no retrier was asked about, after ``ServiceEvent/delay``; ``ServiceEvent/detail`` is
        /// `credential`, `unconditional` or `online`.
        public static let resendScheduled = Name("resend-scheduled")
        /// An attempt failed and no other follows; ``ServiceEvent/stopReason`` says why.
        public static let retriesStopped = Name("retries-stopped")
        /// A further copy of an attempt is sent, since the first is late; ``ServiceEvent/delay`` says how late.
        public static let hedgeStarted = Name("hedge-started")
        /// A further copy of an attempt ended; status or error of the copy, `cancelled` where another one was faster, and in
        /// ``ServiceEvent/delay`` how long it took.
        public static let hedgeEnded = Name("hedge-ended")
        /// A body that had broken off goes on after ``ServiceEvent/bytes``, ``ServiceEvent/delay`` after its last failure.
        public static let bodyResumed = Name("body-resumed")
        /// A circuit opened for ``ServiceEvent/delay``; ``ServiceEvent/detail`` is its origin.
        public static let circuitOpened = Name("circuit-opened")
        /// A circuit closed; ``ServiceEvent/detail`` is its origin.
        public static let circuitClosed = Name("circuit-closed")
        /// A server's word closed the gate of its partition for ``ServiceEvent/delay``.
        public static let gateClosed = Name("gate-closed")
        /// An attempt waits at a closed gate for ``ServiceEvent/delay``.
        public static let gateAwaited = Name("gate-awaited")
        /// An attempt waits for its turn by the learned rate, for ``ServiceEvent/delay``.
        public static let paceAwaited = Name("pace-awaited")
        /// A retry waits for the budget, which is spent.
        public static let budgetAwaited = Name("budget-awaited")
        /// A call waits for the machine to be online.
        public static let connectivityAwaited = Name("connectivity-awaited")
        /// A redirect is followed, to ``ServiceEvent/redirectTarget``.
        public static let redirected = Name("redirected")
        /// A transport reported an interim (1xx) response.
        public static let interimResponse = Name("interim-response")
        /// The body of a network response was read to its end, failed, or was dropped.
        public static let bodyEnded = Name("body-ended")
        /// A cache decided what to do with a request; ``ServiceEvent/cacheDecision`` says what, ``ServiceEvent/detail`` in words.
        public static let cacheDecided = Name("cache-decided")
        /// A response was stored.
        public static let responseStored = Name("response-stored")
        /// A response was not stored; ``ServiceEvent/notStoredReason`` says why, ``ServiceEvent/detail`` in words.
        public static let responseNotStored = Name("response-not-stored")
        /// A revalidation that nobody waits for began, or a call's own exchange became one.
        public static let backgroundRevalidationStarted = Name("background-revalidation-started")
        /// A revalidation that nobody waited for failed, or brought nothing that could be stored.
        public static let backgroundRevalidationFailed = Name("background-revalidation-failed")
        /// An exchange has waited for ``ServiceEvent/delay`` while another process fetched the same; ``ServiceEvent/detail`` says what
        /// came of it: an outcome of a lease, or `overtime`.
        public static let fillAwaited = Name("fill-awaited")
        /// A store failed and was treated as a miss.
        public static let storeFailed = Name("store-failed")
    }
}
