// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// How it stands with a cache, as JSON tells it.
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
        /// Each second of the last five minutes, and each minute of the last hour; the oldest first, the running one last.
        let seconds: SeriesFacts
        let minutes: SeriesFacts
        let totals: TotalFacts
        /// Why the origin was asked or something stale was used, and why responses were not stored; the most frequent first.
        let reasons: [ReasonCount]
        let notStored: [ReasonCount]
        let store: StoreFacts
        let origins: [OriginFacts]
        /// Whether the rules of retrying have a circuit, so that one of which nothing is known is closed.
        let hasCircuit: Bool

        init(_ model: InspectorModel, governor: RetryGovernor?) {
            let (cache, now) = (model.cache, model.clock.now)
            let statistics = cache.statistics
            at = model.clock.timestamp.millisecondsSinceEpoch
            uptime = model.started.duration(to: now).inSeconds
            isShared = cache.options.mode == .shared
            seconds = SeriesFacts(model.seconds())
            minutes = SeriesFacts(
                cache.statisticsByMinute(overLast: .seconds(59 * 60), now: now).map { TrafficFigures($0) }
            )
            totals = TotalFacts(statistics)
            reasons = SummaryFacts.counts(statistics.reasons)
            notStored = SummaryFacts.counts(statistics.notStored)
            store = StoreFacts(cache.store.statistics)
            hasCircuit = governor?.rules.circuit != nil
            origins = OriginFacts.all(model, governor: governor, now: now)
        }

        private static func counts(_ reasons: [CacheReason: Int]) -> [ReasonCount] {
            reasons.map { ReasonCount(code: $0.key.code, section: $0.key.section, count: $0.value) }
                .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
                .prefix(24)
                .map { $0 }
        }
    }

    /// Traffic over time, a list for each figure.
    struct SeriesFacts: Encodable, Sendable {
        let requests: [Int]
        let hits: [Int]
        let stale: [Int]
        let revalidated: [Int]
        let collapsed: [Int]
        let misses: [Int]
        let bypasses: [Int]
        let bytesSaved: [Int]
        let bytesFetched: [Int]

        init(_ figures: [TrafficFigures]) {
            requests = figures.map(\.requests)
            hits = figures.map(\.hits)
            stale = figures.map(\.stale)
            revalidated = figures.map(\.revalidated)
            collapsed = figures.map(\.collapsed)
            misses = figures.map(\.misses)
            bypasses = figures.map(\.bypasses)
            bytesSaved = figures.map(\.bytesSaved)
            bytesFetched = figures.map(\.bytesFetched)
        }
    }

    /// What a cache did since it was made.
    struct TotalFacts: Encodable, Sendable {
        let requests: Int
        let hits: Int
        let staleHits: Int
        let revalidatingHits: Int
        let errorHits: Int
        let revalidated: Int
        let collapsed: Int
        let misses: Int
        let bypasses: Int
        let stored: Int
        let storeFailures: Int
        let backgroundRevalidations: Int
        let backgroundFailures: Int
        let bytesSaved: Int
        let bytesFetched: Int
        let hitRatio: Double
        let byteHitRatio: Double
        let secondsSaved: Double

        init(_ statistics: CacheStatistics) {
            requests = statistics.requests
            hits = statistics.hits
            staleHits = statistics.staleHits
            revalidatingHits = statistics.revalidatingHits
            errorHits = statistics.errorHits
            revalidated = statistics.revalidated
            collapsed = statistics.collapsed
            misses = statistics.misses
            bypasses = statistics.bypasses
            stored = statistics.stored
            storeFailures = statistics.storeFailures
            backgroundRevalidations = statistics.backgroundRevalidations
            backgroundFailures = statistics.backgroundFailures
            bytesSaved = statistics.bytesSaved
            bytesFetched = statistics.networkBytes
            hitRatio = statistics.hitRatio
            byteHitRatio = statistics.byteHitRatio
            secondsSaved = statistics.timeSaved.inSeconds
        }
    }

    /// How full a store is.
    struct StoreFacts: Encodable, Sendable {
        let entries: Int
        let bytes: Int
        let capacity: Int
        let evicted: Int
        let removed: Int
        let corrupt: Int
        let failures: Int

        init(_ statistics: StoreStatistics) {
            entries = statistics.entryCount
            bytes = statistics.bytesUsed
            capacity = statistics.capacity
            evicted = statistics.entriesEvicted
            removed = statistics.entriesRemoved
            corrupt = statistics.entriesCorrupt
            failures = statistics.failures
        }
    }
#endif
