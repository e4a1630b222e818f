// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSimulation

extension HitRateFigures {
    /// The miss-ratio curves: of one trace over bytes, or the mean of several traces over the share of the unique bytes.
    ///
    /// Sizes given in bytes remain in bytes for several traces. A subject with a missing cell at a size has no point there.
    var plot: MissRatioPlot {
        let isInPercent = replays.count > 1 && plan.sizes.allSatisfy { $0.description.hasSuffix("%") }
        let curves = plan.subjects.map { subject in
            MissRatioCurve(
                name: subject.name,
                points: plan.sizes.compactMap { size in
                    Mean(replays.map { $0.cell(subject, size) }).map { mean in
                        let hits = plan.measure == .object ? mean.object : mean.byte
                        return MissRatioCurve.Point(size: place(of: size, isInPercent), missRatio: 1 - hits)
                    }
                }
            )
        }
        let title = replays.count == 1 ? replays[0].name : "mean of \(replays.count) traces"
        return MissRatioPlot(
            title: title,
            measure: plan.measure,
            axis: isInPercent ? .percent : .bytes,
            curves: curves
        )
    }

    /// Where a size is on the axis: the size for the complete trace if this one is a sample.
    private func place(of size: CacheSize, _ isInPercent: Bool) -> Double {
        if isInPercent { return Double(size.description.dropLast()) ?? 0 }
        return Double(size.bytes(uniqueBytes: replays[0].uniqueBytes, rate: replays[0].rate)) / replays[0].rate
    }
}
