// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    public import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    public import Metrics
    private import Synchronization

    /// Reports values that are not events: the state of stores, caches, budgets and gates.
    ///
    /// Call ``collect()`` when the backend is read, or run ``run(every:)`` in a task. Values that only grow are counters,
    /// reported as the difference since the last time; the others are gauges.
    public final class MetricsReporter: Sendable {
        private let series: SeriesTable
        private let caches: [(name: String, cache: HTTPCache)]
        private let governors: [(name: String, governor: RetryGovernor)]
        private let origins: [URL]
        private let clock: any HoldfastClock
        /// The totals that were reported last, by cache and metric.
        private let last = Mutex<[String: [String: Int]]>([:])

        /// Creates a reporter.
        ///
        /// - Parameters:
        ///   - caches: the caches by their `cache` label.
        ///   - governors: the governors by their `governor` label.
        ///   - origins: the origins whose budgets and gates are reported, such as `https://example.com`; each one is a label.
        ///   - metrics: makes the metrics; nil, the default: the factory that `MetricsSystem` was bootstrapped with.
        ///   - clock: the clock of the pipelines.
        public init(
            caches: [String: HTTPCache] = [:],
            governors: [String: RetryGovernor] = [:],
            origins: [URL] = [],
            metrics: (any MetricsFactory)? = nil,
            clock: any HoldfastClock = SystemClock()
        ) {
            series = SeriesTable(metrics ?? MetricsSystem.factory)
            self.caches = caches.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            self.governors = governors.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            self.origins = origins
            self.clock = clock
        }

        /// Reports once. Takes microseconds.
        ///
        /// Calls may overlap. They read one after another, so the `statistics` of a store of your own must not call this.
        public func collect() {
            for (name, cache) in caches { report(cache, name: name) }
            let now = clock.now
            for (name, governor) in governors {
                for origin in origins {
                    guard let status = governor.status(of: origin, now: now) else { continue }
                    report(status, values: [name, label(of: origin)], now: now)
                }
            }
        }

        /// Reports now and after each interval, until its task is cancelled.
        ///
        /// - Parameter interval: measured by the clock; at least a second.
        public func run(every interval: Duration = .seconds(15)) async {
            while !Task.isCancelled {
                collect()
                do {
                    try await clock.sleep(until: clock.now.advanced(by: max(interval, .seconds(1))))
                } catch {
                    return
                }
            }
        }

        private func report(_ cache: HTTPCache, name: String) {
            let (names, values) = (["cache"], [name])
            // Read under the lock: if an older reading followed a newer one, the difference would be counted twice.
            let (store, counts, growth) = last.withLock { last in
                let (store, counts) = (cache.store.statistics, cache.statistics)
                let totals: [String: Int] = [
                    "holdfast.store.lookups": store.lookups,
                    "holdfast.store.evictions": store.entriesEvicted,
                    "holdfast.store.written": store.entriesWritten,
                    "holdfast.store.removed": store.entriesRemoved,
                    "holdfast.store.corrupt": store.entriesCorrupt,
                    "holdfast.store.failures": store.failures,
                    "holdfast.cache.requests": counts.requests,
                    "holdfast.cache.bytes_saved": counts.bytesSaved,
                    "holdfast.cache.bytes_from_network": counts.networkBytes,
                    "holdfast.cache.time_saved_ms": Int(clamping: counts.timeSaved.inNanoseconds / 1_000_000),
                ]
                let before = last.updateValue(totals, forKey: name) ?? [:]
                let growth = totals.map { (metric: $0.key, amount: $0.value - (before[$0.key] ?? 0)) }
                return (store, counts, growth)
            }
            series.gauge("holdfast.store.size", labels: names, values: values, value: Double(store.bytesUsed))
            series.gauge("holdfast.store.capacity", labels: names, values: values, value: Double(store.capacity))
            series.gauge("holdfast.store.entries", labels: names, values: values, value: Double(store.entryCount))
            series.gauge("holdfast.cache.hit_ratio", labels: names, values: values, value: counts.hitRatio)
            series.gauge("holdfast.cache.byte_hit_ratio", labels: names, values: values, value: counts.byteHitRatio)
            // A store that was reset counts from zero.
            for (metric, amount) in growth where amount > 0 {
                series.count(metric, labels: names, values: values, by: Int64(amount))
            }
        }

        private func report(_ status: RetryStatus, values: [String], now: MonotonicInstant) {
            let names = ["governor", "origin"]
            // Without a budget there is no balance to report.
            if status.balance != .max {
                series.gauge("holdfast.retry.balance", labels: names, values: values, value: Double(status.balance))
            }
            let closed = status.gateOpens.map { max(now.duration(to: $0), .zero) } ?? .zero
            series.gauge("holdfast.gate.closed_for", labels: names, values: values, value: closed.inSeconds)
            series.gauge("holdfast.retry.waiting", labels: names, values: values, value: Double(status.waiting))
            if let rate = status.learnedRate {
                series.gauge("holdfast.retry.learned_rate", labels: names, values: values, value: rate)
            }
        }

        private func label(of origin: URL) -> String {
            let url = RedactedURL(origin)
            guard let scheme = url.scheme, let host = url.host else { return Labels.other }
            return "\(scheme)://\(host)" + (origin.port.map { ":\($0)" } ?? "")
        }
    }

    /// The handlers of the existing time series, each made once, because making one is slow and some backends keep every one.
    final class SeriesTable: Sendable {
        /// What identifies a series.
        struct Key: Hashable, Sendable {
            let name: String
            let values: [String]
        }

        private struct Series: Sendable {
            var counters: [Key: any CounterHandler] = [:]
            var timers: [Key: any TimerHandler] = [:]
            var gauges: [Key: any RecorderHandler] = [:]
        }

        private let factory: any MetricsFactory
        private let series = Mutex(Series())

        init(_ factory: any MetricsFactory) {
            self.factory = factory
        }

        /// How many series there are.
        var count: Int {
            series.withLock { $0.counters.count + $0.timers.count + $0.gauges.count }
        }

        func count(_ name: String, labels names: [String], values: [String], by amount: Int64 = 1) {
            let key = Key(name: name, values: values)
            if let counter = series.withLock({ $0.counters[key] }) { return counter.increment(by: amount) }
            // External code is not called under the lock; the second one uses the first one's handler.
            let made = factory.makeCounter(label: name, dimensions: Array(zip(names, values)))
            let (kept, isOurs) = series.withLock { series -> (any CounterHandler, Bool) in
                if let kept = series.counters[key] { return (kept, false) }
                series.counters[key] = made
                return (made, true)
            }
            // A backend that returns one handler per series must not lose it.
            if !isOurs, kept !== made { factory.destroyCounter(made) }
            kept.increment(by: amount)
        }

        func time(_ name: String, labels names: [String], values: [String], duration: Duration) {
            let key = Key(name: name, values: values)
            let nanoseconds = max(duration.inNanoseconds, 0)
            if let timer = series.withLock({ $0.timers[key] }) { return timer.recordNanoseconds(nanoseconds) }
            let made = factory.makeTimer(label: name, dimensions: Array(zip(names, values)))
            let (kept, isOurs) = series.withLock { series -> (any TimerHandler, Bool) in
                if let kept = series.timers[key] { return (kept, false) }
                series.timers[key] = made
                return (made, true)
            }
            if !isOurs, kept !== made { factory.destroyTimer(made) }
            kept.recordNanoseconds(nanoseconds)
        }

        func gauge(_ name: String, labels names: [String], values: [String], value: Double) {
            let key = Key(name: name, values: values)
            if let gauge = series.withLock({ $0.gauges[key] }) { return gauge.record(value) }
            let made = factory.makeRecorder(label: name, dimensions: Array(zip(names, values)), aggregate: false)
            let (kept, isOurs) = series.withLock { series -> (any RecorderHandler, Bool) in
                if let kept = series.gauges[key] { return (kept, false) }
                series.gauges[key] = made
                return (made, true)
            }
            if !isOurs, kept !== made { factory.destroyRecorder(made) }
            kept.record(value)
        }
    }
#endif
