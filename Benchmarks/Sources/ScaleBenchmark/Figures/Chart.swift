// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// Curves with a logarithmic x axis.
struct Chart: Sendable, Equatable {
    /// A position on both axes.
    struct Point: Sendable, Equatable {
        /// At least 1.
        let x: Double
        /// At least 0.
        let y: Double
    }

    /// Points joined by a line.
    struct Curve: Sendable, Equatable {
        let name: String
        let points: [Point]
    }

    let title: String
    /// The titles of the axes.
    let xLabel: String
    let yLabel: String
    /// The positions of the labels on the axis, from left to right.
    let ticks: [(x: Double, word: String)]
    let curves: [Curve]

    /// The position of an x on the axis, from 0 to 1.
    func across(_ x: Double) -> Double {
        guard let first = ticks.first?.x, let last = ticks.last?.x, last > first else { return 0.5 }
        return min(max(log(x / first) / log(last / first), 0), 1)
    }

    /// The top of the scale, which begins at 0: the next round number above all points.
    var ceiling: Double {
        let most = max(curves.flatMap { $0.points.map(\.y) }.max() ?? 0, 1)
        var power = 1.0
        while power * 10 <= most { power *= 10 }
        return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].first { $0 * power >= most } ?? 10) * power
    }

    static func == (left: Chart, right: Chart) -> Bool {
        left.title == right.title && left.curves == right.curves && left.ticks.map(\.x) == right.ticks.map(\.x)
    }

    /// The chart as text for a terminal: a letter for each curve, a plus sign where several meet.
    var text: String {
        let (width, height, ceiling) = (64, 14, ceiling)
        var cells = [[Character]](repeating: [Character](repeating: " ", count: width + 1), count: height + 1)
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        for (index, curve) in curves.enumerated() {
            for point in curve.points {
                let column = Int((across(point.x) * Double(width)).rounded())
                let row = height - Int((min(point.y / ceiling, 1) * Double(height)).rounded())
                cells[row][column] = cells[row][column] == " " ? letters[index % letters.count] : "+"
            }
        }
        var lines = [title, yLabel]
        for (row, line) in cells.enumerated() {
            let isMarked = (height - row) % 7 == 0
            let mark = isMarked ? TextTable.count(Int(ceiling * Double(height - row) / Double(height))) : ""
            let gap = String(repeating: " ", count: max(0, 8 - mark.count))
            var rest = String(line)
            while rest.hasSuffix(" ") { rest.removeLast() }
            lines.append(gap + mark + " |" + rest)
        }
        lines.append(String(repeating: " ", count: 9) + "+" + String(repeating: "-", count: width + 1))
        var words = ""
        for tick in ticks {
            let place = 10 + Int((across(tick.x) * Double(width)).rounded()) - tick.word.count / 2
            words += String(repeating: " ", count: max(1, place - words.count)) + tick.word
        }
        lines += [words + "  " + xLabel, ""]
        for (index, curve) in curves.enumerated() { lines.append("  \(letters[index % letters.count])  \(curve.name)") }
        return lines.joined(separator: "\n") + "\n"
    }
}
