// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The hits of LRU at every size, from one pass over a trace.
///
/// A request is a hit in every cache that is large enough for its key and everything requested since its last request (Mattson,
/// Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970). With sizes, these bytes
/// are summed in a Fenwick tree (1994). The result is exact if keys keep their sizes, for caches that the largest entry fits into:
/// a smaller cache skips entries that it cannot hold, but here they evict others. If a key's size changes, a real cache has unused
/// space for a while, but here it is full: the results differ by a fraction of a point.
///
/// O(log n) for each request; 32 bytes for each request during the pass, 16 for each hit afterward. Lives are ignored.
public struct StackDistances: Sendable {
    /// The size in bytes of the smallest cache that hits, for each request that some cache hits, ascending.
    private var distances: [Int] = []
    /// The total bytes of these requests up to each one.
    private var bytes: [Int] = []
    private let requests: Int
    private let requestedBytes: Int
    /// The smallest size for which the results are exact.
    public let exactFrom: Int

    /// Processes a whole trace.
    ///
    /// - Parameters:
    ///   - trace: the requests.
    ///   - sizesTellVersions: as for ``HitRateSimulator/init(warmUp:sizesTellVersions:)``; true by default. If it is false, a
    ///     copy keeps the size that it was stored with.
    public init(_ trace: RequestTrace, sizesTellVersions: Bool = true) {
        requests = trace.requests.count
        requestedBytes = trace.totalBytes
        exactFrom = Int(trace.requests.lazy.map(\.size).max() ?? 0)
        var tree = FenwickTree(count: trace.requests.count)
        var last = [(index: Int, size: Int)?](repeating: nil, count: trace.keyCount)
        var hits: [(distance: Int, bytes: Int)] = []
        for (index, request) in trace.requests.enumerated() {
            let (key, asked) = (Int(request.key), Int(request.size))
            var size = asked
            if let (before, stored) = last[key] {
                if !sizesTellVersions { size = stored }
                // A copy with another size is another version: no cache hits it, and the new one replaces it.
                if stored == size { hits.append((tree.sum(after: before) + size, asked)) }
                tree.add(-stored, at: before)
            }
            tree.add(size, at: index)
            last[key] = (index, size)
        }
        hits.sort { $0.distance < $1.distance }
        distances = hits.map(\.distance)
        var sum = 0
        bytes = hits.map { hit in
            sum += hit.bytes
            return sum
        }
    }

    /// The share of requests, or of their bytes, that LRU hits with this capacity.
    public func hitRatio(capacity: Int, _ measure: HitRateMeasure = .object) -> Double {
        var (low, high) = (0, distances.count)
        while low < high {
            let middle = (low + high) / 2
            if distances[middle] <= capacity { low = middle + 1 } else { high = middle }
        }
        switch measure {
        case .object: return requests > 0 ? Double(low) / Double(requests) : 0
        case .byte: return requestedBytes > 0 && low > 0 ? Double(bytes[low - 1]) / Double(requestedBytes) : 0
        }
    }

    /// The curve through this many sizes, at least 2, from the smallest with any hits to the smallest with all possible hits.
    public func curve(points count: Int = 100, measure: HitRateMeasure = .object) -> MissRatioCurve {
        guard let least = distances.first, let most = distances.last else {
            return MissRatioCurve(name: "lru", points: [])
        }
        let (low, high) = (Logarithm.ten(Double(max(1, least))), Logarithm.ten(Double(max(1, most))))
        let steps = max(2, count) - 1
        let sizes = (0...steps).map { step in
            // The ends are exact, however the logarithm rounds.
            step == 0
                ? least : step == steps ? most : Int(Logarithm.tenTo(low + (high - low) * Double(step) / Double(steps)))
        }
        return MissRatioCurve(
            name: "lru",
            points: sizes.map { .init(size: Double($0), missRatio: 1 - hitRatio(capacity: $0, measure)) }
        )
    }
}

/// Sums of all numbers up to a place, updated as the numbers change.
private struct FenwickTree {
    private var sums: [Int]
    private var total = 0

    init(count: Int) { sums = Array(repeating: 0, count: count + 1) }

    mutating func add(_ value: Int, at place: Int) {
        total += value
        var index = place + 1
        while index < sums.count {
            sums[index] += value
            index += index & -index
        }
    }

    /// The sum of all numbers after a place.
    func sum(after place: Int) -> Int {
        var (index, sum) = (place + 1, 0)
        while index > 0 {
            sum += sums[index]
            index -= index & -index
        }
        return total - sum
    }
}
