// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    extension ReplayReport {
        private struct Figure: Encodable {
            let `case`: String
            let subject: String
            let value: Double
            let unit: String
        }

        private struct Document: Encodable {
            let results: [Figure]
            let assumptions: [String]
            let malformed: [String]
        }

        /// One object for programs: `{"results": [{"case", "subject", "value", "unit"}, …], "assumptions": […], "malformed": […]}`.
        ///
        /// The case of a ratio is NAME@SIZE, that of a count NAME; ratios are 0 to 1, rounded to a millionth.
        var json: String {
            let account = input.account
            var results = [
                ("requests", account.requests), ("looked-up", account.lookups), ("not-kept", account.unstored.total),
                ("malformed", account.malformed),
                ("objects", Int((Double(input.trace.keyCount) / input.rate).rounded())),
            ].map { Figure(case: name, subject: "input", value: Double($0.1), unit: $0.0) }
            results.append(Figure(case: name, subject: "input", value: Double(workingSet), unit: "working-set-bytes"))
            for (label, tally) in [
                ("not-looked-up", account.bypassed), ("not-kept", account.unstored), ("unbounded", account.unbounded),
            ] {
                results += tally.sorted.map {
                    Figure(case: "\(name)@\(label)", subject: $0.word, value: Double($0.count), unit: "requests")
                }
            }
            results += ratios("\(name)@unbounded", outcome.ceiling)
            for cell in outcome.cells { results += ratios("\(name)@\(cell.size)", cell) }
            let document = Document(results: results, assumptions: assumptions, malformed: account.complaints)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
            // Numbers and text only, so this never fails.
            return (try? encoder.encode(document)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        }

        private func ratios(_ name: String, _ cell: ReplayCell) -> [Figure] {
            func figure(_ value: Double, _ unit: String) -> Figure {
                Figure(case: name, subject: cell.policy.name, value: (value * 1e6).rounded() / 1e6, unit: unit)
            }
            return [
                figure(cell.objectHitRatio, "object-hit-ratio"), figure(cell.byteHitRatio, "byte-hit-ratio"),
            ] + (input.trace.hasLives && !cell.policy.isBound ? [figure(cell.expiredRatio, "expired-ratio")] : [])
        }

        /// The curves as a picture.
        func plot(_ measure: HitRateMeasure) -> MissRatioPlot {
            let curves = policies.indices.map { index in
                let cells = outcome.cells[index * sizes.count..<(index + 1) * sizes.count]
                return MissRatioCurve(
                    name: policies[index].name,
                    points: cells.map { .init(size: Double($0.capacity), missRatio: 1 - $0.hitRatio(measure)) }
                )
            }
            return MissRatioPlot(title: name, measure: measure, axis: .bytes, curves: curves)
        }
    }
#endif
