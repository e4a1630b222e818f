// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// A call that has ended, as the inspector remembers it.
    struct NotedCall: Sendable {
        /// Numbers the calls that were noted, the first is 1.
        var number: UInt64 = 0
        let id: CallID
        let endedAt: Timestamp
        let subject: CallSubject?
        let decision: CacheDecision?
        let source: ResponseSource?
        let status: StatusCode?
        /// The code of the error it ended with; never its text, which may hold anything.
        let errorCode: String?
        let duration: Duration?
        /// Attempts that failed and what followed; empty where the first one sufficed.
        var attempts: [NotedAttempt] = []

        init(_ event: ServiceEvent) {
            id = event.callID
            endedAt = event.timestamp
            subject = event.subject
            decision = event.cacheDecision
            source = event.source
            status = event.status
            errorCode = event.errorCode
            duration = event.delay
        }
    }

    /// An attempt that failed.
    struct NotedAttempt: Sendable, Hashable {
        let number: Int
        let status: Int?
        let errorCode: String?
        /// The wait before the next attempt; nil where none followed.
        let delay: Duration?
        /// Why none followed, or what made another one follow that no retrier was asked about.
        let word: String?

        /// - Parameter event: ``ServiceEvent/Name/retryScheduled``, `resendScheduled` or `retriesStopped`.
        init(_ event: ServiceEvent) {
            number = event.attempt ?? 0
            status = event.status?.rawValue
            errorCode = event.errorCode
            let isLast = event.name == .retriesStopped
            delay = isLast ? nil : event.delay ?? .zero
            word = isLast ? event.stopReason?.rawValue : event.name == .resendScheduled ? event.detail : nil
        }
    }
#endif
