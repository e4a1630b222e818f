// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Metrics
    private import Synchronization

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
