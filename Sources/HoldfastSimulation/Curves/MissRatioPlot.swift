// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Miss-ratio curves as a self-contained SVG picture.
///
/// The horizontal axis is the size on a logarithmic scale, the vertical axis the misses from 0 to 100 %: the lower a line, the
/// better. Lines differ by color and by dash, so that they can be distinguished without colors too. The colors are those of Okabe
/// and Ito (2008), which people with a color vision deficiency can distinguish as well. The background is that of the page, light
/// or dark.
public struct MissRatioPlot: Sendable, Hashable {
    /// What the sizes mean.
    public struct Axis: Sendable, Hashable {
        /// The label below the axis.
        public let label: String
        let form: Form

        enum Form: Sendable, Hashable { case bytes, percent }

        /// Bytes of the cache.
        public static let bytes = Axis(label: "cache size", form: .bytes)
        /// Percent of the bytes of all keys.
        public static let percent = Axis(label: "cache size, share of the bytes of all keys", form: .percent)
    }

    /// The title above the picture.
    public var title: String
    /// What the misses count.
    public var measure: HitRateMeasure
    /// What the sizes mean.
    public var axis: Axis
    /// One line for each, in the order of the legend.
    public var curves: [MissRatioCurve]

    /// A picture of these curves.
    public init(title: String, measure: HitRateMeasure = .object, axis: Axis = .bytes, curves: [MissRatioCurve]) {
        self.title = title
        self.measure = measure
        self.axis = axis
        self.curves = curves
    }

    /// The picture as SVG: the same curves give the same text. 800 units wide; it scales.
    public var svg: String {
        let frame = PlotFrame(curves, form: axis.form)
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(PlotFrame.text(PlotFrame.width)) \#(frame.heightText)" "#
                + #"role="img" font-family="system-ui, sans-serif" font-size="13">"#,
            "<title>\(Self.escaped(title))</title>",
            // A medium gray is visible on white and on black.
            ##"<g fill="#7a7a7a" stroke="none">"##,
            Self.label(title, x: PlotFrame.left, y: 26, anchor: "start", extra: #" font-size="17" font-weight="600""#),
            Self.label(
                axis.label,
                x: (PlotFrame.left + PlotFrame.right) / 2,
                y: PlotFrame.bottom + 42,
                anchor: "middle"
            ),
            Self.label(
                measure == .object ? "requests missed" : "bytes missed",
                x: PlotFrame.left,
                y: PlotFrame.top - 10,
                anchor: "start"
            ),
        ]
        lines += frame.shares.map { share in
            Self.label("\(share) %", x: PlotFrame.left - 8, y: frame.y(Double(share) / 100) + 4, anchor: "end")
        }
        lines += frame.ticks.map { Self.label($0.name, x: $0.x, y: PlotFrame.bottom + 20, anchor: "middle") }
        lines.append("</g>")
        lines.append(##"<g stroke="#8a8a8a" stroke-opacity="0.35" fill="none">"##)
        lines += frame.shares.map { share in
            let y = frame.y(Double(share) / 100)
            return Self.stroke(from: (PlotFrame.left, y), to: (PlotFrame.right, y))
        }
        lines += frame.ticks.map { Self.stroke(from: ($0.x, PlotFrame.top), to: ($0.x, PlotFrame.bottom)) }
        lines.append("</g>")
        for (index, curve) in curves.enumerated() { lines += drawn(curve, index: index, in: frame) }
        return lines.joined(separator: "\n") + "\n</svg>\n"
    }

    /// Black would be invisible on a dark page and yellow on a light one: a medium gray and a darker yellow replace them.
    static let colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8a800", "#808080"]
    static let dashes = ["", "7 3", "2 3", "10 3 2 3"]

    private func drawn(_ curve: MissRatioCurve, index: Int, in frame: PlotFrame) -> [String] {
        let colour = Self.colours[index % Self.colours.count]
        // Another dash for the next eight lines, and for every second line, so that neighbors differ twice.
        let dash = Self.dashes[(index / Self.colours.count + index % 2) % Self.dashes.count]
        let style = ##"stroke="\##(colour)" stroke-width="2""## + (dash.isEmpty ? "" : #" stroke-dasharray="\#(dash)""#)
        let points = curve.points.map { "\(PlotFrame.text(frame.x($0.size))),\(PlotFrame.text(frame.y($0.missRatio)))" }
        let (x, y) = frame.legend(index)
        var lines = [
            #"<polyline fill="none" stroke-linejoin="round" \#(style) points="\#(points.joined(separator: " "))"/>"#,
            #"<path \#(style) d="M\#(PlotFrame.text(x)) \#(PlotFrame.text(y - 4))h28"/>"#,
            Self.label(curve.name, x: x + 34, y: y, anchor: "start", extra: ##" fill="#7a7a7a""##),
        ]
        if curve.points.count == 1, let point = curve.points.first {
            // A single point makes no line.
            lines.append(
                #"<circle cx="\#(PlotFrame.text(frame.x(point.size)))" cy="\#(PlotFrame.text(frame.y(point.missRatio)))" "#
                    + ##"r="4" fill="\##(colour)"/>"##
            )
        }
        return lines
    }

    private static func label(_ text: String, x: Double, y: Double, anchor: String, extra: String = "") -> String {
        #"<text x="\#(PlotFrame.text(x))" y="\#(PlotFrame.text(y))" text-anchor="\#(anchor)"\#(extra)>\#(escaped(text))</text>"#
    }

    private static func stroke(from start: (Double, Double), to end: (Double, Double)) -> String {
        let (x, y) = (PlotFrame.text(start.0), PlotFrame.text(start.1))
        return #"<path d="M\#(x) \#(y)L\#(PlotFrame.text(end.0)) \#(PlotFrame.text(end.1))"/>"#
    }

    /// Text escaped for XML; characters that XML forbids become the replacement character.
    static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "\t", "\n", "\r": out += " "
            case _ where scalar.value < 0x20 || scalar.value & 0xFFFE == 0xFFFE: out += "\u{FFFD}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

/// The layout of a plot: sizes from left to right by their logarithm, shares from bottom to top.
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

    /// Percentages that have a line.
    let shares = [0, 20, 40, 60, 80, 100]
    /// Marks on the axis of sizes: powers of ten and, if there are few, also their multiples by two and five.
    let ticks: [Tick]
    private let low: Double
    private let high: Double
    private let legendRows: Int

    /// A frame that contains all points.
    init(_ curves: [MissRatioCurve], form: MissRatioPlot.Axis.Form) {
        let sizes = curves.flatMap { $0.points.map(\.size) }
        let (least, most) = (sizes.min() ?? 1, sizes.max() ?? 10)
        // A single size is placed in the middle.
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
                    return Tick(
                        name: Self.name(multiple, power: power, form: form),
                        x: Self.x(place, low: low, high: high)
                    )
                }
            }
        }
        let tens = ticks([1])
        self.ticks = tens.count >= 3 ? tens : ticks([1, 2, 5])
    }

    /// The total height, including the legend.
    var heightText: String { Self.text(Self.bottom + 62 + 22 * Double(legendRows)) }

    /// The horizontal position of a size.
    func x(_ size: Double) -> Double { Self.x(Logarithm.ten(size), low: low, high: high) }

    /// The vertical position of a share; one outside 0 ... 1 is on the edge.
    func y(_ share: Double) -> Double {
        Self.bottom - (Self.bottom - Self.top) * min(max(share, 0), 1)
    }

    /// The position of a curve's item in the legend.
    func legend(_ index: Int) -> (x: Double, y: Double) {
        let width = (Self.right - Self.left) / Double(Self.columns)
        return (
            Self.left + width * Double(index % Self.columns), Self.bottom + 70 + 22 * Double(index / Self.columns)
        )
    }

    /// A coordinate with at most one decimal.
    static func text(_ value: Double) -> String {
        let tenths = Int((min(max(value, -1e6), 1e6) * 10).rounded())
        let sign = tenths < 0 ? "-" : ""
        let fraction = tenths.magnitude % 10
        return sign + "\(tenths.magnitude / 10)" + (fraction == 0 ? "" : ".\(fraction)")
    }

    private static func x(_ place: Double, low: Double, high: Double) -> Double {
        left + (right - left) * (place - low) / (high - low)
    }

    /// A multiple of a power of ten as people write it.
    private static func name(_ multiple: Double, power: Int, form: MissRatioPlot.Axis.Form) -> String {
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

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Glibc)
    private import Glibc
#elseif canImport(Musl)
    private import Musl
#endif

/// Logarithms and powers, which the standard library does not have.
enum Logarithm {
    /// The power of ten that gives `value`.
    static func ten(_ value: Double) -> Double {
        log10(value)
    }

    /// Ten to a power.
    static func tenTo(_ power: Double) -> Double {
        pow(10, power)
    }
}
