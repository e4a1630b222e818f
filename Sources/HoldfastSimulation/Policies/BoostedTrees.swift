// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// A regression by gradient-boosted trees over histograms, for squared errors.
///
/// The method is Friedman's (2001) in LightGBM's form (Ke et al., NIPS 2017): values in up to 255 bins, and trees that grow at the
/// leaf where a split gains most. Written for ``ThreeLCachePolicy``; the parameters are those of its authors, the others LightGBM's
/// defaults.
struct BoostedTrees: Sendable {
    /// The number of trees, and the most leaves of each.
    private static let rounds = 16
    private static let leaves = 32
    private static let learningRate = 0.1
    /// The share of the features that a tree uses, and of the rows; rows are drawn again every ``rowsLife`` trees.
    private static let featureShare = 0.8
    private static let rowShare = 0.8
    private static let rowsLife = 5
    private static let leastRowsOfLeaf = 20
    private static let mostBins = 255

    private struct Node: Sendable {
        /// Where a row goes: to ``left`` if its value is at most the threshold; -1 for a leaf.
        var feature = -1
        var threshold = 0.0
        var left = 0
        var right = 0
        var value = 0.0
    }

    private let base: Double
    /// All trees one after another; ``roots`` contains their starts.
    private var nodes: [Node] = []
    private var roots: [Int] = []

    /// The bytes of memory used.
    var bytes: Int { nodes.capacity * MemoryLayout<Node>.stride + roots.capacity * 8 }

    /// Learns to predict `labels` from `rows`, each of `width` consecutive values.
    init(rows: [Double], width: Int, labels: [Double], seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let count = labels.count
        base = count > 0 ? labels.reduce(0, +) / Double(count) : 0
        guard count > 0, width > 0 else { return }
        let table = BinnedTable(rows: rows, width: width, count: count, most: Self.mostBins)
        var residuals = labels.map { [base] in $0 - base }
        var drawn: [UInt32] = []
        for round in 0..<Self.rounds {
            if round % Self.rowsLife == 0 {
                drawn = Self.draw(Int((Double(count) * Self.rowShare).rounded()), of: count, using: &random)
            }
            let features = Self.draw(
                max(1, Int((Double(width) * Self.featureShare).rounded())),
                of: width,
                using: &random
            )
            var tree = TreeGrower(table: table, residuals: residuals, rows: drawn)
            let grown = tree.grow(features: features.map { Int($0) }, leaves: Self.leaves, least: Self.leastRowsOfLeaf)
            // A tree with a single leaf adds nothing to the mean.
            guard grown.count > 1 else { break }
            let root = nodes.count
            roots.append(root)
            for split in grown {
                nodes.append(
                    Node(
                        feature: split.feature,
                        threshold: split.feature < 0 ? 0 : table.threshold(split.feature, bin: split.bin),
                        left: root + split.left,
                        right: root + split.right,
                        value: split.mean * Self.learningRate
                    )
                )
            }
            for row in 0..<count {
                var at = 0
                while grown[at].feature >= 0 {
                    let split = grown[at]
                    at = table.bin(row: row, split.feature) <= split.bin ? split.left : split.right
                }
                residuals[row] -= grown[at].mean * Self.learningRate
            }
        }
    }

    /// The prediction for a row.
    func predict(_ row: UnsafeBufferPointer<Double>) -> Double {
        var sum = base
        nodes.withUnsafeBufferPointer { nodes in
            for root in roots {
                var at = root
                while nodes[at].feature >= 0 {
                    at = row[nodes[at].feature] <= nodes[at].threshold ? nodes[at].left : nodes[at].right
                }
                sum += nodes[at].value
            }
        }
        return sum
    }

    /// This many different numbers below `count`, ascending (Knuth's selection sampling).
    private static func draw(_ wanted: Int, of count: Int, using random: inout SplitMix64) -> [UInt32] {
        var drawn: [UInt32] = []
        drawn.reserveCapacity(wanted)
        for index in 0..<count where drawn.count < wanted {
            let left = UInt64(count - index)
            if random.next().multipliedFullWidth(by: left).high < UInt64(wanted - drawn.count) {
                drawn.append(UInt32(truncatingIfNeeded: index))
            }
        }
        return drawn
    }
}

/// Rows whose values are bin numbers, with about as many rows in each bin.
private struct BinnedTable {
    let width: Int
    private var bins: [UInt8]
    /// For each feature, the largest value of each bin except the last.
    private var ends: [[Double]] = []

    init(rows: [Double], width: Int, count: Int, most: Int) {
        self.width = width
        bins = Array(repeating: 0, count: count * width)
        for feature in 0..<width {
            let sorted = (0..<count).map { rows[$0 * width + feature] }.sorted()
            let ends = BinnedTable.ends(sorted, most: most)
            for row in 0..<count {
                let value = rows[row * width + feature]
                var (low, high) = (0, ends.count)
                while low < high {
                    let middle = (low + high) / 2
                    if value <= ends[middle] { high = middle } else { low = middle + 1 }
                }
                bins[row * width + feature] = UInt8(truncatingIfNeeded: low)
            }
            self.ends.append(ends)
        }
    }

    private static func ends(_ sorted: [Double], most: Int) -> [Double] {
        var ends: [Double] = []
        var (left, share) = (sorted.count, max(1, sorted.count / most))
        var filled = 0
        for (index, value) in sorted.enumerated().dropLast() {
            filled += 1
            // Equal values are never in two bins.
            guard value < sorted[index + 1], filled >= share, ends.count < most - 1 else { continue }
            ends.append(value + (sorted[index + 1] - value) / 2)
            left -= filled
            filled = 0
            share = max(1, left / max(1, most - ends.count))
        }
        return ends
    }

    func bin(row: Int, _ feature: Int) -> Int { Int(bins[row * width + feature]) }
    func binCount(_ feature: Int) -> Int { ends[feature].count + 1 }
    func threshold(_ feature: Int, bin: Int) -> Double { ends[feature][bin] }
    func withBins<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        bins.withUnsafeBufferPointer(body)
    }
}

/// Grows one tree.
private struct TreeGrower {
    /// A node during growth; a leaf while ``feature`` is -1.
    struct Split {
        var feature = -1
        var bin = 0
        var left = 0
        var right = 0
        var mean = 0.0
    }

    private struct Sums {
        var residual = 0.0
        var rows = 0.0
    }

    private struct Leaf {
        var node: Int
        var start: Int
        var end: Int
        var histogram: [Sums]
        var gain = 0.0
        var feature = -1
        var bin = 0
    }

    let table: BinnedTable
    let residuals: [Double]
    var rows: [UInt32]

    mutating func grow(features: [Int], leaves most: Int, least: Int) -> [Split] {
        var nodes = [Split()]
        let first = Leaf(
            node: 0,
            start: 0,
            end: rows.count,
            histogram: histogram(from: 0, to: rows.count, features: features)
        )
        var open = [evaluated(first, features: features, least: least)]
        nodes[0].mean = mean(from: 0, to: rows.count)
        while open.count < most {
            guard let best = open.indices.max(by: { open[$0].gain < open[$1].gain }), open[best].gain > 1e-12 else {
                break
            }
            let leaf = open.remove(at: best)
            let middle = partition(leaf)
            let (left, right) = (nodes.count, nodes.count + 1)
            nodes.append(Split(mean: mean(from: leaf.start, to: middle)))
            nodes.append(Split(mean: mean(from: middle, to: leaf.end)))
            nodes[leaf.node].feature = leaf.feature
            nodes[leaf.node].bin = leaf.bin
            (nodes[leaf.node].left, nodes[leaf.node].right) = (left, right)
            // The larger part's histogram is the whole minus the smaller one's.
            let isLeftSmaller = middle - leaf.start <= leaf.end - middle
            let small =
                isLeftSmaller
                ? histogram(from: leaf.start, to: middle, features: features)
                : histogram(from: middle, to: leaf.end, features: features)
            var large = leaf.histogram
            for index in large.indices {
                large[index].residual -= small[index].residual
                large[index].rows -= small[index].rows
            }
            let parts = isLeftSmaller ? (small, large) : (large, small)
            open.append(
                evaluated(
                    Leaf(node: left, start: leaf.start, end: middle, histogram: parts.0),
                    features: features,
                    least: least
                )
            )
            open.append(
                evaluated(
                    Leaf(node: right, start: middle, end: leaf.end, histogram: parts.1),
                    features: features,
                    least: least
                )
            )
        }
        return nodes
    }

    private func mean(from start: Int, to end: Int) -> Double {
        guard end > start else { return 0 }
        return rows[start..<end].reduce(0) { $0 + residuals[Int($1)] } / Double(end - start)
    }

    private func histogram(from start: Int, to end: Int, features: [Int]) -> [Sums] {
        var sums = Array(repeating: Sums(), count: 256 * features.count)
        let width = table.width
        sums.withUnsafeMutableBufferPointer { sums in
            table.withBins { bins in
                residuals.withUnsafeBufferPointer { residuals in
                    for row in rows[start..<end] {
                        let (place, residual) = (Int(row) * width, residuals[Int(row)])
                        for (index, feature) in features.enumerated() {
                            let cell = index << 8 | Int(bins[place + feature])
                            sums[cell].residual += residual
                            sums[cell].rows += 1
                        }
                    }
                }
            }
        }
        return sums
    }

    /// The leaf with its best split.
    private func evaluated(_ leaf: Leaf, features: [Int], least: Int) -> Leaf {
        var leaf = leaf
        let least = Double(least)
        for (index, feature) in features.enumerated() {
            let cells = leaf.histogram[index << 8..<index << 8 + table.binCount(feature)]
            let all = cells.reduce(into: Sums()) {
                $0.residual += $1.residual; $0.rows += $1.rows
            }
            guard all.rows >= 2 * least else { continue }
            var left = Sums()
            for (bin, cell) in cells.dropLast().enumerated() {
                left.residual += cell.residual
                left.rows += cell.rows
                let right = Sums(residual: all.residual - left.residual, rows: all.rows - left.rows)
                guard left.rows >= least else { continue }
                guard right.rows >= least else { break }
                let gain =
                    left.residual * left.residual / left.rows + right.residual * right.residual / right.rows
                    - all.residual * all.residual / all.rows
                if gain > leaf.gain { (leaf.gain, leaf.feature, leaf.bin) = (gain, feature, bin) }
            }
        }
        return leaf
    }

    /// Moves the rows of a leaf that go left before the others; returns where those begin.
    private mutating func partition(_ leaf: Leaf) -> Int {
        var middle = leaf.start
        for index in leaf.start..<leaf.end where table.bin(row: Int(rows[index]), leaf.feature) <= leaf.bin {
            rows.swapAt(index, middle)
            middle += 1
        }
        return middle
    }
}
