// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// The state of a cache, for JSON.
    struct SummaryFacts: Encodable, Sendable {
        /// How often a reason decided.
        struct ReasonCount: Encodable, Sendable {
            let code: String
            let section: String
            let count: Int
        }

        let at: Int64
        let uptime: Double
        let isShared: Bool
        /// Each second of the last five minutes, and each minute of the last hour; the oldest first, the current one
        /// last.
        let seconds: [String: [Int]]
        let minutes: [String: [Int]]
        /// What the cache has done since it was created.
        let totals: [String: Double]
        /// Why the origin was asked or a stale response was used, and why responses were not stored; the most frequent
        /// first.
        let reasons: [ReasonCount]
        let notStored: [ReasonCount]
        /// How full the store is.
        let store: [String: Int]
        let origins: [OriginFacts]
        /// Whether the retry rules have a circuit, so that an unknown one is closed.
        let hasCircuit: Bool

        init(_ model: InspectorModel, governor: RetryGovernor?) {
            let (cache, now) = (model.cache, model.clock.now)
            let statistics = cache.statistics
            at = model.clock.timestamp.millisecondsSinceEpoch
            uptime = model.started.duration(to: now).inSeconds
            isShared = cache.options.mode == .shared
            seconds = TrafficFigures.series(model.seconds())
            minutes = TrafficFigures.series(
                cache.statisticsByMinute(overLast: .seconds(59 * 60), now: now).map { TrafficFigures($0) }
            )
            totals = SummaryFacts.totals(statistics)
            reasons = SummaryFacts.counts(statistics.reasons)
            notStored = SummaryFacts.counts(statistics.notStored)
            let stored = cache.store.statistics
            store = [
                "entries": stored.entryCount, "bytes": stored.bytesUsed, "capacity": stored.capacity,
                "evicted": stored.entriesEvicted, "removed": stored.entriesRemoved, "corrupt": stored.entriesCorrupt,
                "failures": stored.failures,
            ]
            hasCircuit = governor?.rules.circuit != nil
            origins = OriginFacts.all(model, governor: governor, now: now)
        }

        /// Whole numbers have no decimal point in the JSON, like those of an integer.
        private static func totals(_ statistics: CacheStatistics) -> [String: Double] {
            let counts = [
                "requests": statistics.requests, "hits": statistics.hits, "staleHits": statistics.staleHits,
                "revalidatingHits": statistics.revalidatingHits, "staleOnError": statistics.staleOnError,
                "revalidated": statistics.revalidated, "collapsed": statistics.collapsed, "misses": statistics.misses,
                "bypasses": statistics.bypasses, "stored": statistics.stored,
                "storeFailures": statistics.storeFailures,
                "backgroundRevalidations": statistics.backgroundRevalidations,
                "backgroundFailures": statistics.backgroundFailures, "bytesSaved": statistics.bytesSaved,
                "bytesFetched": statistics.networkBytes,
            ]
            var totals = counts.mapValues { Double($0) }
            totals["hitRatio"] = statistics.hitRatio
            totals["byteHitRatio"] = statistics.byteHitRatio
            totals["secondsSaved"] = statistics.timeSaved.inSeconds
            return totals
        }

        private static func counts(_ reasons: [CacheReason: Int]) -> [ReasonCount] {
            reasons.map { ReasonCount(code: $0.key.code, section: $0.key.section, count: $0.value) }
                .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
                .prefix(24)
                .map { $0 }
        }
    }

    /// The recently ended calls, for JSON.
    struct CallListFacts: Encodable, Sendable {
        /// The newest first.
        let calls: [CallFacts]
        /// The number of the newest call.
        let newest: UInt64
    }

    /// One call.
    struct CallFacts: Encodable, Sendable {
        let number: UInt64
        let at: Int64
        let method: String
        let url: String
        let operation: String?
        let decision: DecisionFacts?
        let source: String?
        let status: Int?
        let error: String?
        let milliseconds: Double?
        /// The failed ones and what followed.
        let attempts: [AttemptSummary]
        /// How many attempts the response needed, if it came over the network.
        let sends: Int?

        init(_ call: CallRecord) {
            number = call.number
            at = call.endedAt.millisecondsSinceEpoch
            method = String((call.subject?.method.rawValue ?? "").prefix(32))
            url = call.subject?.url?.description ?? ""
            operation = call.subject?.operationName.map { String($0.prefix(128)) }
            decision = call.decision.map { DecisionFacts($0, at: nil) }
            source = call.source?.word
            status = call.status?.rawValue
            error = call.errorCode
            milliseconds = call.duration?.milliseconds
            attempts = call.attempts
            if case .network(let attempts) = call.source { sends = attempts } else { sends = nil }
        }
    }

    /// What a cache decided, and why.
    struct DecisionFacts: Encodable, Sendable {
        let outcome: String
        let reason: String
        let section: String
        /// `stored`, or why not; nil for a response from the store.
        let storage: String?
        let at: Int64?

        init(_ decision: CacheDecision, at time: Timestamp?) {
            outcome = decision.outcome.word
            reason = decision.reason.code
            section = decision.reason.section
            storage =
                switch decision.storage {
                case .stored: "stored"
                case .storing: "storing"
                case .notStored(let reason): "not stored: \(reason)"
                case nil: nil
                }
            at = time?.millisecondsSinceEpoch
        }
    }

    extension Duration {
        /// The length in milliseconds, with three decimals.
        var milliseconds: Double {
            let (seconds, attoseconds) = components
            return (Double(seconds) * 1e6 + (Double(attoseconds) / 1e12).rounded()) / 1e3
        }

        /// The length in seconds, with three decimals.
        var inSeconds: Double {
            let (seconds, attoseconds) = components
            return (Double(seconds) * 1e3 + (Double(attoseconds) / 1e15).rounded()) / 1e3
        }
    }

    /// A page of the stored responses, for JSON.
    struct EntryListFacts: Encodable, Sendable {
        let entries: [EntryFacts]
        /// The beginning of the next page; nil if there is none.
        let next: String?
        /// How many entries were examined for this page, and how many there are.
        let looked: Int
        let total: Int
        /// When the ages were calculated.
        let at: Int64
    }

    /// One stored response.
    struct EntryFacts: Encodable, Sendable {
        let id: String
        let url: String
        let method: String
        let status: Int
        let bodyLength: Int
        let storedBytes: Int?
        let hits: Int?
        let age: Int64
        let freshnessLeft: Int64
        let isFresh: Bool
        let needsConfirmation: Bool
        let isPersonal: Bool
        let isPinned: Bool
        let storedAt: Int64
        let decision: DecisionFacts?

        init(_ info: CacheEntryInfo, id: String, decision: LastDecisions.Noted?) {
            self.id = id
            url = EntryFacts.shown(info.target)
            method = info.method.rawValue
            status = info.status.rawValue
            bodyLength = info.bodyLength
            storedBytes = info.storedBytes
            hits = info.hits
            age = info.age
            freshnessLeft = info.freshnessLeft
            isFresh = info.isFresh
            needsConfirmation = info.needsConfirmation
            isPersonal = info.isPersonal
            isPinned = info.isPinned
            storedAt = info.storedAt.millisecondsSinceEpoch
            self.decision = decision.map { DecisionFacts($0.decision, at: $0.time) }
        }

        /// A URI without possible credentials.
        static func shown(_ target: TargetURI) -> String {
            guard let url = URL(string: target.canonical) else { return target.origin + "/" + RedactedURL.placeholder }
            return RedactedURL(url).description
        }
    }

    /// One stored response with its head.
    struct EntryDetailFacts: Encodable, Sendable {
        /// A field line, whose value may be hidden.
        struct Line: Encodable, Sendable {
            let name: String
            let value: String?
            let isHidden: Bool
        }

        static let mostLines = 256

        let entry: EntryFacts
        let headLength: Int
        let fields: [Line]
        /// The fields that its Vary nominates; neither a value nor hidden: the request had no such field.
        let nominated: [Line]
        let tags: [String]
        /// The available bytes, if the content is incomplete.
        let storedRanges: String?
        let at: Int64

        init(_ exported: ExportedEntry, id: String, decision: LastDecisions.Noted?, now: Timestamp) {
            let info = exported.info
            entry = EntryFacts(info, id: id, decision: decision)
            headLength = info.headLength
            fields = exported.head.fields.prefix(EntryDetailFacts.mostLines).map { line in
                let shown = FieldMask.shown(line.value, of: line.name)
                return Line(name: line.name.rawName, value: shown, isHidden: shown == nil)
            }
            nominated = info.nominated.prefix(EntryDetailFacts.mostLines).map { field in
                guard let value = field.value.text, let name = FieldName(field.name) else {
                    return Line(name: field.name, value: nil, isHidden: field.value.isHidden)
                }
                let shown = FieldMask.shown(value, of: name)
                return Line(name: field.name, value: shown, isHidden: shown == nil)
            }
            tags = info.tags.sorted()
            storedRanges = info.storedRanges.map { ranges in
                ranges.intervals.prefix(16).map { "\($0.lowerBound)–\($0.upperBound - 1)" }.joined(separator: ", ")
            }
            at = now.millisecondsSinceEpoch
        }
    }

    /// The state of one origin.
    struct OriginFacts: Encodable, Sendable {
        /// Its retries, from ``RetryStatus``.
        struct Retries: Encodable, Sendable {
            /// Nil: there is no budget.
            let balance: Int?
            let gateOpensIn: Double?
            let waiting: Int
            let learnedRate: Double?
            let calls: Int
            let failedAttempts: Int
            let retries: Int
            let hedges: Int
            let stops: [String: Int]

            init(_ status: RetryStatus, now: MonotonicInstant) {
                balance = status.balance == .max ? nil : status.balance
                gateOpensIn = status.gateOpens.map { max(0, now.duration(to: $0).inSeconds) }
                waiting = status.waiting
                learnedRate = status.learnedRate.flatMap { $0.isFinite ? $0 : nil }
                calls = status.counts.calls
                failedAttempts = status.counts.failedAttempts
                retries = status.counts.retries
                hedges = status.counts.hedges
                stops = Dictionary(status.counts.stops.map { ($0.key.rawValue, $0.value) }) { $0 &+ $1 }
            }
        }

        static let most = 65

        /// Nil: all origins that are not counted separately.
        let origin: String?
        let requests: Int
        let hitRatio: Double
        let bytesSaved: Int
        let bytesFetched: Int
        let retries: Retries?
        /// For how many seconds nothing is sent there; 0 once probes are allowed; nil if its circuit is not open.
        let circuitOpensIn: Double?

        init(_ statistics: OriginStatistics, retries: Retries?, circuitOpensIn: Double?) {
            origin = statistics.origin.map { String($0.prefix(512)) }
            requests = statistics.statistics.requests
            hitRatio = statistics.statistics.hitRatio
            bytesSaved = statistics.statistics.bytesSaved
            bytesFetched = statistics.statistics.networkBytes
            self.retries = retries
            self.circuitOpensIn = circuitOpensIn
        }

        /// The origins that the cache counts separately, those with the most requests first.
        static func all(_ model: InspectorModel, governor: RetryGovernor?, now: MonotonicInstant) -> [OriginFacts] {
            let circuits = model.openCircuits
            return model.cache.originStatistics.prefix(most).compactMap { each in
                if each.origin == nil, each.statistics.requests == 0 { return nil }
                let url = each.origin.flatMap { URL(string: $0) }
                let status = url.flatMap { governor?.status(of: $0, now: now) }
                return OriginFacts(
                    each,
                    retries: status.map { Retries($0, now: now) },
                    circuitOpensIn: each.origin.flatMap { circuits[$0] }.map { max(0, now.duration(to: $0).inSeconds) }
                )
            }
        }
    }

    /// Removes credentials from the header fields that a page shows.
    enum FieldMask {
        /// The most characters of a value to show.
        static let longestValue = 4096

        /// The part of a field's value to show; nil if none.
        static func shown(_ value: String, of name: FieldName) -> String? {
            let name = name.canonicalName
            if hidden.contains(name) || suspicious.contains(where: { name.contains($0) })
                || name.split(separator: "-").contains(where: { suspiciousParts.contains(String($0)) })
            {
                return nil
            }
            if addresses.contains(name) {
                guard let url = URL(string: value) else { return nil }
                return RedactedURL(url).description
            }
            // URLs followed by parameters that may be private.
            if holdersOfAddresses.contains(name), value.contains("?") || value.contains("@") { return nil }
            return value.utf8.count > longestValue ? String(value.prefix(longestValue)) + "…" : value
        }

        private static let hidden: Set<String> = [
            "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie",
            "set-cookie",
            "set-cookie2",
        ]
        private static let suspicious = [
            "token", "secret", "password", "passwd", "api-key", "apikey", "credential", "signature", "session",
        ]
        private static let suspiciousParts: Set<String> = [
            "auth", "bearer", "csrf", "jwt", "key", "otp", "pass", "pin", "pwd", "sid", "sig", "xsrf",
        ]
        private static let addresses: Set<String> = ["location", "content-location", "referer", "sourcemap"]
        private static let holdersOfAddresses: Set<String> = ["link", "refresh"]
    }
#endif
