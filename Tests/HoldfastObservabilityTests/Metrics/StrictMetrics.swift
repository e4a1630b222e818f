// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import CoreMetrics
    import Synchronization

    /// A backend as strict as swift-prometheus 2.0, which ends the process where a metric's kind or the names of its labels change
    /// after its first use: here each such breach is put down.
    ///
    /// Like that backend it knows a metric by its name with everything but letters, digits and underscores made an underscore.
    final class StrictMetrics: MetricsFactory {
        private enum Kind { case counter, gauge, histogram, duration }

        private struct State {
            var families: [String: (kind: Kind, labels: [String])] = [:]
            var breaches: [String] = []
        }

        private let state = Mutex(State())

        /// What would have ended the process.
        var breaches: [String] { state.withLock { $0.breaches } }
        /// The names of all metrics that were used.
        var names: Set<String> { state.withLock { Set($0.families.keys) } }

        private func use(_ label: String, _ dimensions: [(String, String)], as kind: Kind) {
            let name = StrictMetrics.plain(label)
            let labels = dimensions.map { StrictMetrics.plain($0.0) }
            state.withLock { state in
                if Set(labels).count < labels.count || labels.contains("le") || labels.contains("quantile") {
                    state.breaches.append("\(label): a label twice, or a reserved one: \(labels)")
                }
                guard let known = state.families[name] else { return state.families[name] = (kind, labels) }
                if known.kind != kind { state.breaches.append("\(label): \(known.kind) and \(kind)") }
                if known.labels != labels { state.breaches.append("\(label): \(known.labels) and \(labels)") }
            }
        }

        private static func plain(_ name: String) -> String {
            String(name.lowercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        }

        func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
            use(label, dimensions, as: .counter)
            return NOOPMetricsHandler.instance
        }

        func makeFloatingPointCounter(label: String, dimensions: [(String, String)]) -> any FloatingPointCounterHandler
        {
            use(label, dimensions, as: .counter)
            return NOOPMetricsHandler.instance
        }

        func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
            use(label, dimensions, as: .gauge)
            return NOOPMetricsHandler.instance
        }

        func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
            use(label, dimensions, as: aggregate ? .histogram : .gauge)
            return NOOPMetricsHandler.instance
        }

        func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
            use(label, dimensions, as: .duration)
            return NOOPMetricsHandler.instance
        }

        func destroyCounter(_ handler: any CounterHandler) {}
        func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
        func destroyMeter(_ handler: any MeterHandler) {}
        func destroyRecorder(_ handler: any RecorderHandler) {}
        func destroyTimer(_ handler: any TimerHandler) {}
    }
#endif
