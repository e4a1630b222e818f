// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where things lie in a plot: sizes from left to right by their logarithm, shares from the bottom to the top.
struct PlotFrame: Sendable {
    static let width = 800.0
    static let left = 70.0
    static let right = 780.0
    static let top = 70.0
    static let bottom = 430.0
    private static let columns = 4

    /// A mark on the axis of sizes.
    struct Tick: Sendable, Hashable {
        let name: String
        let x: Double
    }

    /// Percents that have a line.
    let shares = [0, 20, 40, 60, 80, 100]
    /// Marks on the axis of sizes: powers of ten, and where these are few also their twofold and fivefold.
    let ticks: [Tick]
    private let low: Double
    private let high: Double
    private let legendRows: Int

    /// A frame that holds all points.
    init(_ curves: [MissRatioCurve], _ form: MissRatioPlot.Axis.Form) {
        let sizes = curves.flatMap { $0.points.map(\.size) }
        let (least, most) = (sizes.min() ?? 1, sizes.max() ?? 10)
        // One size alone stands in the middle.
        (low, high) =
            least < most
            ? (Logarithm.ten(least), Logarithm.ten(most)) : (Logarithm.ten(least) - 0.5, Logarithm.ten(least) + 0.5)
        legendRows = (curves.count + Self.columns - 1) / Self.columns
        let (low, high) = (low, high)
        func ticks(_ multiples: [Double]) -> [Tick] {
            (Int(low.rounded(.down))...Int(high.rounded(.up))).flatMap { power in
                multiples.compactMap { multiple in
                    let place = Logarithm.ten(multiple) + Double(power)
                    guard place >= low - 1e-9, place <= high + 1e-9 else { return nil }
                    return Tick(name: Self.name(multiple, power, form), x: Self.x(place, low, high))
                }
            }
        }
        let tens = ticks([1])
        self.ticks = tens.count >= 3 ? tens : ticks([1, 2, 5])
    }

    /// The whole height, the legend included.
    var heightText: String { Self.text(Self.bottom + 62 + 22 * Double(legendRows)) }

    /// Where a size lies.
    func x(_ size: Double) -> Double { Self.x(Logarithm.ten(size), low, high) }

    /// Where a share lies; one outside 0 ... 1 on the edge.
    func y(_ share: Double) -> Double {
        Self.bottom - (Self.bottom - Self.top) * min(max(share, 0), 1)
    }

    /// Where the item of a curve in the legend begins.
    func legend(_ index: Int) -> (x: Double, y: Double) {
        let width = (Self.right - Self.left) / Double(Self.columns)
        return (
            Self.left + width * Double(index % Self.columns), Self.bottom + 70 + 22 * Double(index / Self.columns)
        )
    }

    /// A coordinate with one place at most.
    static func text(_ value: Double) -> String {
        let tenths = Int((min(max(value, -1e6), 1e6) * 10).rounded())
        let sign = tenths < 0 ? "-" : ""
        let fraction = tenths.magnitude % 10
        return sign + "\(tenths.magnitude / 10)" + (fraction == 0 ? "" : ".\(fraction)")
    }

    private static func x(_ place: Double, _ low: Double, _ high: Double) -> Double {
        left + (right - left) * (place - low) / (high - low)
    }

    /// A multiple of a power of ten as people write it.
    private static func name(_ multiple: Double, _ power: Int, _ form: MissRatioPlot.Axis.Form) -> String {
        let digit = "\(Int(multiple))"
        switch form {
        case .percent:
            return (power >= 0 ? digit + zeros(power) : "0." + zeros(-power - 1) + digit) + " %"
        case .bytes:
            guard power >= 0 else { return "0." + zeros(-power - 1) + digit + " B" }
            let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
            let unit = min(power / 3, units.count - 1)
            return digit + zeros(power - 3 * unit) + " " + units[unit]
        }
    }

    private static func zeros(_ count: Int) -> String { String(repeating: "0", count: count) }
}
