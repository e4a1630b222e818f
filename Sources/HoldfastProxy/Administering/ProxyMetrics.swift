// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    private import Synchronization

    /// The counts of a proxy in the Prometheus text format 0.0.4.
    final class ProxyMetrics: EventObserver {
        /// Figures that are counted elsewhere.
        struct Connections: Sendable {
            var server: ProxyServer.Statistics
            /// The origins, and whether they are used at the moment.
            var origins: [OriginGroup.Report]
            /// Whether the servers are checked.
            var areChecked = false
        }

        private struct Histogram {
            static let bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
            var counts = [Int](repeating: 0, count: bounds.count)
            var count = 0
            var sum = 0.0

            mutating func add(_ seconds: Double) {
                count += 1
                sum += seconds
                if let place = Histogram.bounds.firstIndex(where: { seconds <= $0 }) { counts[place] += 1 }
            }
        }

        private struct State {
            /// By status; a status above 599 counts as 999.
            var statuses: [Int: Int] = [:]
            var bytes = 0
            var broken = 0
            /// Time to the head of the response: without the origin, and with it.
            var fromCache = Histogram()
            var fromOrigin = Histogram()
            var events: [ServiceEvent.Name: Int] = [:]
            var stops: [StopReason: Int] = [:]
            var failures: [ProxyFailure.Kind: Int] = [:]
        }

        private static let counted: [(name: ServiceEvent.Name, metric: String, help: String)] = [
            (.attemptStarted, "holdfast_origin_attempts_total", "Requests sent to the origin, retries included."),
            (.retryScheduled, "holdfast_retries_total", "Retries that were scheduled."),
            (.gateClosed, "holdfast_gates_closed_total", "Times an origin asked for a pause."),
            (.gateAwaited, "holdfast_gate_waits_total", "Attempts that waited at a closed gate."),
            (.circuitOpened, "holdfast_circuits_opened_total", "Circuits that opened."),
        ]

        private let state = Mutex(State())

        var observedEvents: Set<ServiceEvent.Name>? { Set(ProxyMetrics.counted.map(\.name) + [.retriesStopped]) }

        func observe(_ event: ServiceEvent) {
            if event.name == .retriesStopped {
                guard let reason = event.stopReason else { return }
                return state.withLock { $0.stops[reason, default: 0] += 1 }
            }
            state.withLock { $0.events[event.name, default: 0] += 1 }
        }

        func note(_ record: ProxyRecord) {
            let seconds = record.duration / .seconds(1)
            let status = record.status.rawValue > 599 ? 999 : record.status.rawValue
            state.withLock { state in
                state.statuses[status, default: 0] += 1
                state.bytes &+= record.bodyBytes
                if !record.isComplete { state.broken += 1 }
                // Nothing was looked up or sent, so there is no time to measure.
                if record.refusal != nil { return }
                if record.attempts == 0 { state.fromCache.add(seconds) } else { state.fromOrigin.add(seconds) }
            }
        }

        func note(_ failure: ProxyFailure) {
            state.withLock { $0.failures[failure.kind, default: 0] += 1 }
        }

        /// All metrics in the text format.
        func text(cache: HTTPCache?, connections: Connections?) -> String {
            let state = state.withLock { $0 }
            var page = Page()
            page.family("holdfast_responses_total", type: "counter", help: "Responses to clients, by status.")
            for (status, count) in state.statuses.sorted(by: { $0.key < $1.key }) {
                page.add(count, labels: ["code": "\(status)"])
            }
            page.single(
                "holdfast_response_bytes_total",
                type: "counter",
                help: "Bytes of bodies sent to clients.",
                value: state.bytes
            )
            page.single(
                "holdfast_responses_broken_total",
                type: "counter",
                help: "Responses that were not delivered completely.",
                value: state.broken
            )
            page.family("holdfast_response_seconds", type: "histogram", help: "Time to the head of a response.")
            for (source, histogram) in [("cache", state.fromCache), ("origin", state.fromOrigin)] {
                var sum = 0
                for (bound, count) in zip(Histogram.bounds, histogram.counts) {
                    sum += count
                    page.add(sum, labels: ["source": source, "le": "\(bound)"], suffix: "_bucket")
                }
                page.add(histogram.count, labels: ["source": source, "le": "+Inf"], suffix: "_bucket")
                page.add("\(histogram.sum)", labels: ["source": source], suffix: "_sum")
                page.add(histogram.count, labels: ["source": source], suffix: "_count")
            }
            for (name, metric, help) in ProxyMetrics.counted {
                page.single(metric, type: "counter", help: help, value: state.events[name] ?? 0)
            }
            page.family(
                "holdfast_retries_stopped_total",
                type: "counter",
                help: "Calls that were given up after a failed attempt."
            )
            for (reason, count) in state.stops.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                page.add(count, labels: ["reason": reason.rawValue])
            }
            page.family("holdfast_failures_total", type: "counter", help: "Failures in the log, by kind.")
            for kind in ProxyFailure.Kind.allCases {
                page.add(state.failures[kind] ?? 0, labels: ["kind": kind.rawValue])
            }
            if let cache { add(cache, to: &page) }
            if let connections { add(connections, to: &page) }
            return page.text
        }

        private func add(_ cache: HTTPCache, to page: inout Page) {
            let counts = cache.statistics
            page.family(
                "holdfast_cache_requests_total",
                type:
                    "counter",
                help:
                    "Requests that reached the cache, by result."
            )
            for (result, count) in [
                ("hit", counts.hits), ("stale-hit", counts.staleHits), ("revalidating-hit", counts.revalidatingHits),
                ("stale-on-error", counts.staleOnError), ("revalidated", counts.revalidated),
                ("collapsed", counts.collapsed), ("miss", counts.misses), ("bypass", counts.bypasses),
            ] { page.add(count, labels: ["result": result]) }
            page.family(
                "holdfast_cache_bytes_total",
                type: "counter",
                help: "Bytes of bodies, by where they came from."
            )
            for (source, bytes) in [
                ("hit", counts.hitBytes), ("revalidated", counts.revalidatedBytes),
                ("collapsed", counts.collapsedBytes),
                ("origin", counts.networkBytes),
            ] { page.add(bytes, labels: ["source": source]) }
            page.single(
                "holdfast_cache_stored_total",
                type: "counter",
                help: "Responses that were stored.",
                value: counts.stored
            )
            page.family(
                "holdfast_cache_not_stored_total",
                type: "counter",
                help: "Responses that were not stored, by reason."
            )
            for (reason, count) in counts.notStored.sorted(by: { "\($0.key)" < "\($1.key)" }) {
                page.add(count, labels: ["reason": "\(reason)"])
            }
            page.single(
                "holdfast_revalidations_total",
                type: "counter",
                help: "Revalidations started in the background.",
                value: counts.backgroundRevalidations
            )
            page.single(
                "holdfast_revalidations_failed_total",
                type: "counter",
                help: "Background revalidations that failed.",
                value: counts.backgroundFailures
            )
            let store = cache.store.statistics
            page.single(
                "holdfast_store_failures_total",
                type: "counter",
                help: "Failures of the store.",
                value: counts.storeFailures
            )
            page.single("holdfast_store_entries", type: "gauge", help: "Entries in the store.", value: store.entryCount)
            page.single("holdfast_store_bytes", type: "gauge", help: "Bytes in the store.", value: store.bytesUsed)
            page.single(
                "holdfast_store_capacity_bytes",
                type: "gauge",
                help: "The most bytes that the store may hold.",
                value: store.capacity
            )
            page.single(
                "holdfast_store_evictions_total",
                type: "counter",
                help: "Entries that were evicted.",
                value: store.entriesEvicted
            )
        }

        private func add(_ connections: Connections, to page: inout Page) {
            let server = connections.server
            page.single(
                "holdfast_client_connections",
                type: "gauge",
                help: "Connections of clients.",
                value: server.connectionsOpen
            )
            page.single(
                "holdfast_client_connections_total",
                type: "counter",
                help: "Connections served so far.",
                value: server.connectionsAccepted
            )
            page.single(
                "holdfast_client_connections_refused_total",
                type: "counter",
                help: "Connections that were refused because of the limit.",
                value: server.connectionsRefused
            )
            page.single(
                "holdfast_requests_under_way",
                type: "gauge",
                help: "Requests that are not completely answered.",
                value: server.requestsUnderWay
            )
            page.family("holdfast_origin_connections", type: "gauge", help: "Connections to origins.")
            page.add(server.origin.open - server.origin.idle, labels: ["state": "busy"])
            page.add(server.origin.idle, labels: ["state": "idle"])
            page.single(
                "holdfast_origin_waiting",
                type: "gauge",
                help: "Requests in line for a connection.",
                value: server.origin.waiting
            )
            page.single(
                "holdfast_origin_connections_total",
                type: "counter",
                help: "Connections opened to origins.",
                value: server.origin.opened
            )
            if connections.origins.isEmpty { return }
            page.family(
                "holdfast_origin_up",
                type: "gauge",
                help: "Whether an origin is used; 0 while it is left out."
            )
            for origin in connections.origins { page.add(origin.isUp ? 1 : 0, labels: ["origin": origin.name]) }
            guard connections.areChecked else { return }
            page.family(
                "holdfast_origin_check_up",
                type: "gauge",
                help: "Whether an origin is up according to its checks; 0 while it is not used."
            )
            for origin in connections.origins {
                page.add(origin.health.isUp ? 1 : 0, labels: ["origin": origin.name])
            }
            page.family(
                "holdfast_origin_checks_total",
                type: "counter",
                help: "Checks of origins, by result."
            )
            for origin in connections.origins {
                page.add(origin.health.passed, labels: ["origin": origin.name, "result": "pass"])
                page.add(origin.health.failed, labels: ["origin": origin.name, "result": "fail"])
            }
        }
    }

    /// Text in the Prometheus format.
    private struct Page {
        private(set) var text = ""
        private var name = ""

        mutating func family(_ name: String, type: String, help: String) {
            self.name = name
            text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
        }

        mutating func single(_ name: String, type: String, help: String, value: Int) {
            family(name, type: type, help: help)
            add(value, labels: [:])
        }

        mutating func add(_ value: Int, labels: KeyValuePairs<String, String>, suffix: String = "") {
            add("\(value)", labels: labels, suffix: suffix)
        }

        mutating func add(_ value: String, labels: KeyValuePairs<String, String>, suffix: String = "") {
            let list = labels.map { "\($0.key)=\"\(Page.escaped($0.value))\"" }.joined(separator: ",")
            text += "\(name)\(suffix)\(list.isEmpty ? "" : "{\(list)}") \(value)\n"
        }

        private static func escaped(_ text: String) -> String {
            text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        }
    }
#endif
