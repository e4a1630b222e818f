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
            page.family("holdfast_responses_total", help: "Responses to clients, by status.")
            for (status, count) in state.statuses.sorted(by: { $0.key < $1.key }) {
                page.add(count, labels: ["code": "\(status)"])
            }
            page.singles([
                ("holdfast_response_bytes_total", "Bytes of bodies sent to clients.", state.bytes),
                ("holdfast_responses_broken_total", "Responses that were not delivered completely.", state.broken),
            ])
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
            page.singles(ProxyMetrics.counted.map { ($0.metric, $0.help, state.events[$0.name] ?? 0) })
            page.family("holdfast_retries_stopped_total", help: "Calls that were given up after a failed attempt.")
            for (reason, count) in state.stops.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                page.add(count, labels: ["reason": reason.rawValue])
            }
            page.family("holdfast_failures_total", help: "Failures in the log, by kind.")
            for kind in ProxyFailure.Kind.allCases {
                page.add(state.failures[kind] ?? 0, labels: ["kind": kind.rawValue])
            }
            if let cache { add(cache, to: &page) }
            if let connections { add(connections, to: &page) }
            return page.text
        }

        private func add(_ cache: HTTPCache, to page: inout Page) {
            let counts = cache.statistics
            page.family("holdfast_cache_requests_total", help: "Requests that reached the cache, by result.")
            for (result, count) in [
                ("hit", counts.hits), ("stale-hit", counts.staleHits), ("revalidating-hit", counts.revalidatingHits),
                ("stale-on-error", counts.staleOnError), ("revalidated", counts.revalidated),
                ("collapsed", counts.collapsed), ("miss", counts.misses), ("bypass", counts.bypasses),
            ] { page.add(count, labels: ["result": result]) }
            page.family("holdfast_cache_bytes_total", help: "Bytes of bodies, by where they came from.")
            for (source, bytes) in [
                ("hit", counts.hitBytes), ("revalidated", counts.revalidatedBytes),
                ("collapsed", counts.collapsedBytes),
                ("origin", counts.networkBytes),
            ] { page.add(bytes, labels: ["source": source]) }
            page.singles([("holdfast_cache_stored_total", "Responses that were stored.", counts.stored)])
            page.family("holdfast_cache_not_stored_total", help: "Responses that were not stored, by reason.")
            for (reason, count) in counts.notStored.sorted(by: { "\($0.key)" < "\($1.key)" }) {
                page.add(count, labels: ["reason": "\(reason)"])
            }
            let (started, failed) = (counts.backgroundRevalidations, counts.backgroundFailures)
            let store = cache.store.statistics
            page.singles([
                ("holdfast_revalidations_total", "Revalidations started in the background.", started),
                ("holdfast_revalidations_failed_total", "Background revalidations that failed.", failed),
                ("holdfast_store_failures_total", "Failures of the store.", counts.storeFailures),
                ("holdfast_store_entries", "Entries in the store.", store.entryCount),
                ("holdfast_store_bytes", "Bytes in the store.", store.bytesUsed),
                ("holdfast_store_capacity_bytes", "The most bytes that the store may hold.", store.capacity),
                ("holdfast_store_evictions_total", "Entries that were evicted.", store.entriesEvicted),
            ])
        }

        private func add(_ connections: Connections, to page: inout Page) {
            let (server, origin) = (connections.server, connections.server.origin)
            let refused = "Connections that were refused because of the limit."
            page.singles([
                ("holdfast_client_connections", "Connections of clients.", server.connectionsOpen),
                ("holdfast_client_connections_total", "Connections served so far.", server.connectionsAccepted),
                ("holdfast_client_connections_refused_total", refused, server.connectionsRefused),
                ("holdfast_requests_under_way", "Requests that are not completely answered.", server.requestsUnderWay),
            ])
            page.family("holdfast_origin_connections", help: "Connections to origins.")
            page.add(origin.open - origin.idle, labels: ["state": "busy"])
            page.add(origin.idle, labels: ["state": "idle"])
            page.singles([
                ("holdfast_origin_waiting", "Requests in line for a connection.", origin.waiting),
                ("holdfast_origin_connections_total", "Connections opened to origins.", origin.opened),
            ])
            if connections.origins.isEmpty { return }
            page.family("holdfast_origin_up", help: "Whether an origin is used; 0 while it is left out.")
            for origin in connections.origins { page.add(origin.isUp ? 1 : 0, labels: ["origin": origin.name]) }
            guard connections.areChecked else { return }
            page.family(
                "holdfast_origin_check_up",
                help: "Whether an origin is up according to its checks; 0 while it is not used."
            )
            for origin in connections.origins {
                page.add(origin.health.isUp ? 1 : 0, labels: ["origin": origin.name])
            }
            page.family("holdfast_origin_checks_total", help: "Checks of origins, by result.")
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

        /// - Parameter type: by default what the name says: a counter ends in `_total`, anything else is a gauge.
        mutating func family(_ name: String, type: String? = nil, help: String) {
            self.name = name
            let type = type ?? (name.hasSuffix("_total") ? "counter" : "gauge")
            text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
        }

        /// Families of one number each.
        mutating func singles(_ families: [(name: String, help: String, value: Int)]) {
            for (name, help, value) in families {
                family(name, help: help)
                add(value, labels: [:])
            }
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
