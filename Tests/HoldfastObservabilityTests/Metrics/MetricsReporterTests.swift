// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import CoreMetrics
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastStorage
    import HoldfastTesting
    import MetricsTestKit
    import Synchronization
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(.timeLimit(.minutes(20))) struct MetricsReporterTests {
        @Test("Size, capacity, entries and ratio are gauges; counters are reported by their increments")
        func caches() async throws {
            let cache = HTTPCache.inMemory(capacity: 1 << 20)
            let bench = ObservedPipeline([.respond(200, ["Cache-Control": "max-age=60"], body: "abc")], cache: cache)
            let metrics = TestMetrics()
            let reporter = MetricsReporter(caches: ["main": cache], metrics: metrics, clock: bench.clock)
            for _ in 0..<4 { try await bench.get("https://example.com/a") }
            await bench.pipeline.drain()
            reporter.collect()
            reporter.collect()
            let labels = [("cache", "main")]
            #expect(try metrics.expectCounter("holdfast.cache.requests", labels).totalValue == 4)
            #expect(try metrics.expectCounter("holdfast.store.written", labels).totalValue == 1)
            #expect(try metrics.expectCounter("holdfast.cache.bytes_saved", labels).totalValue == 9)
            #expect(try metrics.expectGauge("holdfast.store.entries", labels).lastValue == 1)
            #expect(try metrics.expectGauge("holdfast.store.capacity", labels).lastValue == Double(1 << 20))
            #expect(try metrics.expectGauge("holdfast.cache.hit_ratio", labels).lastValue == 0.75)
            #expect(metrics.counters(label: "holdfast.store.evictions").isEmpty)
        }

        @Test("Overlapping collections count everything once, and a backend may collect while it is called")
        func overlapping() throws {
            let cache = HTTPCache.inMemory()
            let metrics = InterruptingMetrics()
            let reporter = MetricsReporter(caches: ["main": cache], metrics: metrics, clock: ManualClock())
            let lookUp: @Sendable () -> Void = {
                _ = cache.store.peek(StoreKey([1]), now: StoreInstant(milliseconds: 0))
            }
            lookUp()
            // Between the reading of the totals and the report of their growth.
            metrics.interrupt {
                lookUp()
                reporter.collect()
            }
            reporter.collect()
            reporter.collect()
            let lookups = try metrics.kept.expectCounter("holdfast.store.lookups", [("cache", "main")])
            #expect(lookups.totalValue == 2)
        }

        @Test("Budget balance and gate are reported for the origins that were named")
        func governors() async throws {
            let factory = BackoffRetrier.Factory.default
            let governor = try #require(factory.governor)
            let bench = ObservedPipeline(
                [.respond(429, ["Retry-After": "7200"])],
                retrierFactory: factory
            )
            try await bench.get("https://example.com/a")
            let metrics = TestMetrics()
            let origin = try #require(URL(string: "https://example.com"))
            let unknown = try #require(URL(string: "https://unknown.example"))
            let reporter = MetricsReporter(
                governors: ["main": governor],
                origins: [origin, unknown],
                metrics: metrics,
                clock: bench.clock
            )
            reporter.collect()
            let labels = [("governor", "main"), ("origin", "https://example.com")]
            #expect(try metrics.expectGauge("holdfast.gate.closed_for", labels).lastValue ?? 0 > 0)
            #expect(try metrics.expectGauge("holdfast.retry.balance", labels).lastValue ?? -1 >= 0)
            #expect(!metrics.recorders.contains { "\($0.dimensions)".contains("unknown.example") })
        }

        @Test("A running reporter reports at each interval and ends with its task")
        func running() async throws {
            let clock = ManualClock()
            let cache = HTTPCache.inMemory()
            let metrics = TestMetrics()
            let reporter = MetricsReporter(caches: ["main": cache], metrics: metrics, clock: clock)
            let task = Task { await reporter.run(every: .seconds(10)) }
            try await clock.waitForSleeps(1)
            clock.advance(by: .seconds(10))
            try await clock.waitForSleeps(2)
            task.cancel()
            await task.value
            let gauge = try metrics.expectGauge("holdfast.store.capacity", [("cache", "main")])
            #expect(gauge.values.count == 2)
        }
    }

    /// Keeps what is reported, and runs a closure once, when the next gauge is made.
    private final class InterruptingMetrics: MetricsFactory {
        let kept = TestMetrics()
        private let next = Mutex<(@Sendable () -> Void)?>(nil)

        func interrupt(_ body: @escaping @Sendable () -> Void) { next.withLock { $0 = body } }

        func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
            let interruption = next.withLock { next in
                defer { next = nil }
                return next
            }
            interruption?()
            return kept.makeRecorder(label: label, dimensions: dimensions, aggregate: aggregate)
        }

        func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
            kept.makeCounter(label: label, dimensions: dimensions)
        }

        func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
            kept.makeTimer(label: label, dimensions: dimensions)
        }

        func destroyRecorder(_ handler: any RecorderHandler) {}
        func destroyCounter(_ handler: any CounterHandler) {}
        func destroyTimer(_ handler: any TimerHandler) {}
    }
#endif
