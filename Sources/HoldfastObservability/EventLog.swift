// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    internal import HoldfastSemantics
    internal import Logging

    /// Writes events as log records: a fixed message, and details in metadata.
    struct EventLog: Sendable {
        private let logger: Logger
        private let options: ObserverOptions
        private let cleaner: TextCleaner

        init(_ logger: Logger, options: ObserverOptions) {
            self.logger = logger
            self.options = options
            cleaner = TextCleaner(shownArguments: options.shownArguments)
        }

        func write(_ event: ServiceEvent) {
            guard let (level, message) = record(of: event), level >= logger.logLevel else { return }
            logger.log(level: level, message, metadata: metadata(of: event))
        }

        private var beginningLevel: Logger.Level {
            let levels = Logger.Level.allCases
            guard let index = levels.firstIndex(of: options.decisionLevel), index > 0 else {
                return options.decisionLevel
            }
            return levels[index - 1]
        }

        /// Level and message; nil for unknown events, which others may add.
        private func record(of event: ServiceEvent) -> (Logger.Level, Logger.Message)? {
            let hasFailed = event.error != nil && event.errorCode != "cancelled"
            switch event.name {
            case .callStarted: return (beginningLevel, "call started")
            case .attemptStarted: return (beginningLevel, "attempt started")
            case .interimResponse: return (beginningLevel, "interim response")
            case .callEnded where hasFailed: return (options.failureLevel, "call failed")
            case .callEnded: return (options.decisionLevel, event.error == nil ? "call ended" : "call cancelled")
            case .attemptEnded: return (options.decisionLevel, hasFailed ? "attempt failed" : "attempt ended")
            case .cacheDecided: return (options.decisionLevel, "cache decided")
            case .responseStored: return (options.decisionLevel, "response stored")
            case .responseNotStored: return (options.decisionLevel, "response not stored")
            case .redirected: return (options.decisionLevel, "redirect followed")
            case .hedgeEnded: return (options.decisionLevel, "hedge ended")
            case .backgroundRevalidationStarted: return (options.decisionLevel, "background revalidation started")
            case .bodyEnded where hasFailed: return (options.troubleLevel, "body broke off")
            case .bodyEnded: return (options.decisionLevel, event.error == nil ? "body ended" : "body dropped")
            case .retryScheduled: return (options.retryLevel, "retry scheduled")
            case .resendScheduled: return (options.retryLevel, "resend scheduled")
            case .hedgeStarted: return (options.retryLevel, "hedge started")
            case .bodyResumed: return (options.retryLevel, "body resumed")
            case .gateClosed: return (options.retryLevel, "gate closed")
            case .backoffAwaited: return (options.retryLevel, "waiting before a retry")
            case .gateAwaited: return (options.retryLevel, "waiting at a closed gate")
            case .paceAwaited: return (options.retryLevel, "waiting for the learned rate")
            case .budgetAwaited: return (options.retryLevel, "waiting for the retry budget")
            case .connectivityAwaited: return (options.retryLevel, "waiting for the network")
            case .fillAwaited: return (options.decisionLevel, "waited for another process")
            case .circuitClosed: return (options.retryLevel, "circuit closed")
            // Most of what is not retried is a response like 404, which is not a problem.
            case .retriesStopped where event.retryClass == .never(.notRetryable):
                return (options.decisionLevel, "not retried")
            case .retriesStopped: return (options.troubleLevel, "retries stopped")
            case .circuitOpened: return (options.troubleLevel, "circuit opened")
            case .storeFailed: return (options.troubleLevel, "store failed")
            case .backgroundRevalidationFailed: return (options.troubleLevel, "background revalidation failed")
            default: return nil
            }
        }

        private func metadata(of event: ServiceEvent) -> Logger.Metadata {
            var metadata: Logger.Metadata = ["call": "\(event.callID.number)"]
            func put(_ key: String, value: String?) {
                if let value { metadata[key] = .string(value) }
            }
            put("attempt", value: event.attempt.map(String.init))
            put("method", value: event.method.map { Labels.method($0) })
            if options.logsURLs {
                put("url", value: event.url?.text(showing: options.shownArguments))
            } else {
                put("host", value: event.url?.host)
            }
            put("operation", value: event.operationName.map { cleaner.clean($0, of: nil) })
            put("status", value: event.status.map { String($0.rawValue) })
            put("source", value: event.source?.word)
            if let decision = event.cacheDecision {
                put("cache.outcome", value: decision.outcome.word)
                put("cache.reason", value: decision.reason.description)
                put("cache.age", value: decision.age.map { String($0) })
            }
            put("not-stored.reason", value: event.notStoredReason?.description)
            put("delay", value: event.delay.map { "\($0.inSeconds) s" })
            put("bytes", value: event.bytes.map { String($0) })
            put("retry.class", value: event.retryClass.map { Labels.retryClass($0) })
            put("stop.reason", value: event.stopReason?.rawValue)
            put("retry.after", value: event.retryAfter.map { "\($0.inSeconds) s" })
            put("progress", value: event.progress.map { Labels.progress($0) })
            if event.connectionReused == true { put("connection.reused", value: "true") }
            if event.isBackground { put("background", value: "true") }
            put("redirect.host", value: event.redirectTarget?.host)
            put("error.code", value: event.errorCode)
            put("error.message", value: message(of: event.error, event.url))
            if event.name == .resendScheduled { put("cause", value: event.detail) }
            if event.name == .storeFailed { put("store.code", value: event.detail) }
            return metadata
        }

        /// An error's message: cleaned if it is our own type; only the type of any other, because their texts contain URLs and
        /// fields.
        private func message(of error: (any Error)?, _ url: RedactedURL?) -> String? {
            guard let error else { return nil }
            guard let error = error as? ServiceError else { return String(describing: type(of: error)) }
            return cleaner.clean(error.message, of: url)
        }
    }
#endif
