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

        init(_ factory: any MetricsFactory, options: ObserverOptions) {
            series = SeriesTable(factory)
            hosts = LabelBound(limit: options.maximumHosts)
            operations = LabelBound(limit: options.maximumOperations)
        }

        func count(_ event: ServiceEvent) {
            switch event.name {
            case .callEnded: callEnded(event)
            case .attemptEnded: attemptEnded(event)
            case .retryScheduled, .retriesStopped: retryDecided(event)
            case .resendScheduled: add("holdfast.resends", labels: ["cause"], values: [code(event.detail)])
            case .redirected:
                add("holdfast.redirects", labels: ["server.address"], values: [host(event)])
                if let delay = event.delay { wait("redirect", for: delay) }
            case .hedgeStarted: add("holdfast.hedges", labels: ["server.address"], values: [host(event)])
            case .hedgeEnded: add("holdfast.hedges.ended", labels: ["outcome"], values: [outcome(event)])
            case .bodyResumed: add("holdfast.body.resumes", labels: ["server.address"], values: [host(event)])
            case .bodyEnded:
                add("holdfast.body.endings", labels: ["outcome"], values: [outcome(event)])
                received(event.bytes ?? 0, from: host(event))
            case .gateClosed: add("holdfast.gate.closings", labels: ["server.address"], values: [host(event)])
            case .backoffAwaited: wait("backoff", for: event.delay)
            case .gateAwaited: wait("gate", for: event.delay)
            case .paceAwaited: wait("pace", for: event.delay)
            case .budgetAwaited: wait("budget", for: nil)
            case .connectivityAwaited: wait("connectivity", for: nil)
            case .fillAwaited: wait("fill", for: event.delay)
            case .circuitOpened, .circuitClosed: circuitChanged(event)
            case .cacheDecided:
                guard let decision = event.cacheDecision else { return }
                add(
                    "holdfast.cache.decisions",
                    labels: ["outcome", "reason"],
                    values: [decision.outcome.word, code(decision.reason.code)]
                )
            case .responseStored: add("holdfast.cache.stored", labels: [], values: [])
            case .responseNotStored:
                add("holdfast.cache.not_stored", labels: ["reason"], values: [code(event.notStoredReason?.code)])
            case .storeFailed: add("holdfast.cache.store_failures", labels: ["code"], values: [code(event.detail)])
            case .backgroundRevalidationStarted: add("holdfast.cache.background_revalidations", labels: [], values: [])
            case .backgroundRevalidationFailed: add("holdfast.cache.background_failures", labels: [], values: [])
            default: break
            }
        }

        private func callEnded(_ event: ServiceEvent) {
            let source = event.source?.word ?? Labels.none
            let operation = operations.label(event.operationName)
            add(
                "holdfast.calls",
                labels: ["source", "outcome", "operation"],
                values: [source, outcome(event), operation]
            )
            guard let delay = event.delay else { return }
            series.time(
                "holdfast.call.duration",
                labels: ["source", "operation"],
                values: [source, operation],
                duration: delay
            )
        }

        /// OpenTelemetry's `http.client.request.duration`, for each attempt.
        private func attemptEnded(_ event: ServiceEvent) {
            let (address, port) = server(event)
            if let delay = event.delay {
                // Always the same names: OpenTelemetry omits what does not apply, but Prometheus clients reject a metric whose
                // label names change, or stop the process.
                series.time(
                    "http.client.request.duration",
                    labels: [
                        "http.request.method", "server.address", "server.port", "http.response.status_code",
                        "error.type",
                    ],
                    values: [
                        Labels.method(event.method), address, port,
                        event.status.map { Labels.statusText($0) } ?? Labels.none,
                        Labels.errorType(event.status, code: event.errorCode) ?? Labels.none,
                    ],
                    duration: delay
                )
            }
            add("holdfast.attempts", labels: ["outcome", "server.address"], values: [outcome(event), address])
            if let bytes = event.bytes { received(bytes, from: address) }
        }

        private func received(_ bytes: Int, from address: String) {
            if bytes > 0 {
                series.count("holdfast.body.bytes", labels: ["server.address"], values: [address], by: Int64(bytes))
            }
        }

        private func retryDecided(_ event: ServiceEvent) {
            let isStopped = event.name == .retriesStopped
            add(
                "holdfast.retry.decisions",
                labels: ["class", "stop_reason"],
                values: [
                    Labels.retryClass(event.retryClass),
                    isStopped ? code(event.stopReason?.rawValue) : Labels.none,
                ]
            )
        }

        private func circuitChanged(_ event: ServiceEvent) {
            let isOpen = event.name == .circuitOpened
            // Each port of a host has a circuit of its own.
            let (address, port) = server(event)
            add(
                "holdfast.circuit.changes",
                labels: ["state", "server.address", "server.port"],
                values: [isOpen ? "open" : "closed", address, port]
            )
            series.gauge(
                "holdfast.circuit.open",
                labels: ["server.address", "server.port"],
                values: [address, port],
                value: isOpen ? 1 : 0
            )
        }

        private func wait(_ kind: String, for duration: Duration?) {
            add("holdfast.waits", labels: ["kind"], values: [kind])
            if let duration {
                series.time("holdfast.wait.duration", labels: ["kind"], values: [kind], duration: duration)
            }
        }

        private func add(_ name: String, labels names: [String], values: [String]) {
            series.count(name, labels: names, values: values)
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
