// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    internal import HoldfastSemantics
    internal import Metrics

    /// Counts and times events, with a limited number of labels.
    struct EventMetrics: Sendable {
        let series: SeriesTable
        private let hosts: LabelBound
        private let operations: LabelBound
        /// Codes of reasons, which other retriers and caches may add.
        private let codes = LabelBound(limit: 128)

        init(_ factory: any MetricsFactory, _ options: ObserverOptions) {
            series = SeriesTable(factory)
            hosts = LabelBound(limit: options.maximumHosts)
            operations = LabelBound(limit: options.maximumOperations)
        }

        func count(_ event: ServiceEvent) {
            switch event.name {
            case .callEnded: callEnded(event)
            case .attemptEnded: attemptEnded(event)
            case .retryScheduled, .retriesStopped: judged(event)
            case .resendScheduled: add("holdfast.resends", ["cause"], [code(event.detail)])
            case .redirected:
                add("holdfast.redirects", ["server.address"], [host(event)])
                if let delay = event.delay { wait("redirect", delay) }
            case .hedgeStarted: add("holdfast.hedges", ["server.address"], [host(event)])
            case .hedgeEnded: add("holdfast.hedges.ended", ["outcome"], [outcome(event)])
            case .bodyResumed: add("holdfast.body.resumes", ["server.address"], [host(event)])
            case .bodyEnded:
                add("holdfast.body.endings", ["outcome"], [outcome(event)])
                received(event.bytes ?? 0, from: host(event))
            case .gateClosed: add("holdfast.gate.closings", ["server.address"], [host(event)])
            case .gateAwaited: wait("gate", event.delay)
            case .paceAwaited: wait("pace", event.delay)
            case .budgetAwaited: wait("budget", nil)
            case .connectivityAwaited: wait("connectivity", nil)
            case .circuitOpened, .circuitClosed: circuitChanged(event)
            case .cacheDecided:
                guard let decision = event.cacheDecision else { return }
                add(
                    "holdfast.cache.decisions",
                    ["outcome", "reason"],
                    [Labels.outcome(decision.outcome), code(decision.reason.code)]
                )
            case .responseStored: add("holdfast.cache.stored", [], [])
            case .responseNotStored: add("holdfast.cache.not_stored", ["reason"], [code(event.notStoredReason?.code)])
            case .storeFailed: add("holdfast.cache.store_failures", ["code"], [code(event.detail)])
            case .backgroundRevalidationStarted: add("holdfast.cache.background_revalidations", [], [])
            case .backgroundRevalidationFailed: add("holdfast.cache.background_failures", [], [])
            default: break
            }
        }

        private func callEnded(_ event: ServiceEvent) {
            let source = Labels.source(event.source)
            let operation = operations.label(event.operationName)
            add(
                "holdfast.calls",
                ["source", "outcome", "operation"],
                [source, outcome(event), operation]
            )
            guard let delay = event.delay else { return }
            series.time("holdfast.call.duration", ["source", "operation"], [source, operation], delay)
        }

        /// OpenTelemetry's `http.client.request.duration`, for each attempt.
        private func attemptEnded(_ event: ServiceEvent) {
            let (address, port) = server(event)
            if let delay = event.delay {
                // Always the same names: OpenTelemetry omits what does not apply, but Prometheus clients reject a metric whose
                // label names change, or stop the process.
                series.time(
                    "http.client.request.duration",
                    [
                        "http.request.method", "server.address", "server.port", "http.response.status_code",
                        "error.type",
                    ],
                    [
                        Labels.method(event.method), address, port,
                        event.status.map { Labels.statusText($0) } ?? Labels.none,
                        Labels.errorType(event.status, event.errorCode) ?? Labels.none,
                    ],
                    delay
                )
            }
            add("holdfast.attempts", ["outcome", "server.address"], [outcome(event), address])
            if let bytes = event.bytes { received(bytes, from: address) }
        }

        private func received(_ bytes: Int, from address: String) {
            if bytes > 0 { series.count("holdfast.body.bytes", ["server.address"], [address], by: Int64(bytes)) }
        }

        private func judged(_ event: ServiceEvent) {
            let isStopped = event.name == .retriesStopped
            add(
                "holdfast.retry.decisions",
                ["class", "stop_reason"],
                [
                    Labels.retryClass(event.retryClass),
                    isStopped ? code(event.stopReason?.rawValue) : Labels.none,
                ]
            )
            if !isStopped { wait("backoff", event.delay) }
        }

        private func circuitChanged(_ event: ServiceEvent) {
            let isOpen = event.name == .circuitOpened
            let address = host(event)
            add("holdfast.circuit.changes", ["state", "server.address"], [isOpen ? "open" : "closed", address])
            series.gauge("holdfast.circuit.open", ["server.address"], [address], isOpen ? 1 : 0)
        }

        private func wait(_ kind: String, _ duration: Duration?) {
            add("holdfast.waits", ["kind"], [kind])
            if let duration { series.time("holdfast.wait.duration", ["kind"], [kind], duration) }
        }

        private func add(_ name: String, _ names: [String], _ values: [String]) {
            series.count(name, names, values)
        }

        private func code(_ text: String?) -> String { codes.label(text) }

        /// How something ended: the class of its status, or the code of its error.
        private func outcome(_ event: ServiceEvent) -> String {
            if let code = event.errorCode { return code }
            guard let status = event.status else { return "ok" }
            return switch Labels.status(status) / 100 {
            case 1: "1xx"
            case 2: "2xx"
            case 3: "3xx"
            case 4: "4xx"
            case 5: "5xx"
            default: Labels.other
            }
        }

        private func host(_ event: ServiceEvent) -> String { server(event).address }

        private func server(_ event: ServiceEvent) -> (address: String, port: String) {
            guard let url = event.url, let host = url.host else { return (Labels.none, "0") }
            let port = url.port.map { String($0) } ?? "0"
            guard hosts.label("\(host):\(port)") != Labels.other else { return (Labels.other, "0") }
            return (host, port)
        }
    }
#endif
