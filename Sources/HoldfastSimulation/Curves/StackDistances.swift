// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What LRU hits at every size, from one pass over a trace.
///
/// A request is a hit in every cache that is large enough for the key and all that was asked for since it was asked for last
/// (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970); with sizes
/// these bytes are summed, in a tree of Fenwick's (1994). Exact where keys keep their sizes, for caches that the largest entry
/// fits into: a smaller one passes over entries that it cannot hold, here they push others out. Where a key's size changes, a
/// cache has room for a while that nothing fills, here it is full: the answers differ by a fraction of a point.
///
/// O(log n) a request; 32 bytes a request while it is made, 16 a hit afterwards. Lives are left out of account.
public struct StackDistances: Sendable {
    /// Bytes of the smallest cache that hits, for each request that a cache of some size hits, in rising order.
    private var distances: [Int] = []
    /// Bytes of these requests and of those before.
    private var bytes: [Int] = []
    private let requests: Int
    private let requestedBytes: Int
    /// The least size for which the answers are exact.
    public let exactFrom: Int

    /// Looks at a whole trace.
    public init(_ trace: RequestTrace) {
        requests = trace.requests.count
        requestedBytes = trace.totalBytes
        exactFrom = Int(trace.requests.lazy.map(\.size).max() ?? 0)
        var tree = FenwickTree(count: trace.requests.count)
        var last = [(index: Int, size: Int)?](repeating: nil, count: trace.keyCount)
        var hits: [(distance: Int, bytes: Int)] = []
        for (index, request) in trace.requests.enumerated() {
            let (key, size) = (Int(request.key), Int(request.size))
            if let (before, stored) = last[key] {
                // A copy of another size is another version: no cache hits it, and the new one takes its place.
                if stored == size { hits.append((tree.sum(after: before) + size, size)) }
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

    /// The share of requests, or of their bytes, that LRU hits with so many bytes.
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

    /// The curve through so many sizes, 2 at least, from the least that hits anything to the least that hits all there is to hit.
    public func curve(points count: Int = 100, measure: HitRateMeasure = .object) -> MissRatioCurve {
        guard let least = distances.first, let most = distances.last else {
            return MissRatioCurve(name: "lru", points: [])
        }
        let (low, high) = (Logarithm.ten(Double(max(1, least))), Logarithm.ten(Double(max(1, most))))
        let steps = max(2, count) - 1
        let sizes = (0...steps).map { step in
            // The ends exactly, whatever the logarithm rounds to.
            step == 0
                ? least : step == steps ? most : Int(Logarithm.tenTo(low + (high - low) * Double(step) / Double(steps)))
        }
        return MissRatioCurve(
            name: "lru",
            points: sizes.map { .init(size: Double($0), missRatio: 1 - hitRatio(capacity: $0, measure)) }
        )
    }
}

/// Sums of all numbers up to a place, kept up to date as the numbers change.
private struct FenwickTree {
    private var sums: [Int]
    private var total = 0

    init(count: Int) {
        sums = Array(repeating: 0, count: count + 1)
    }

    mutating func add(_ value: Int, at place: Int) {
        total += value
        var index = place + 1
        while index < sums.count {
            sums[index] += value
            index += index & -index
        }
    }

    /// The sum of all numbers behind a place.
    func sum(after place: Int) -> Int {
        var (index, sum) = (place + 1, 0)
        while index > 0 {
            sum += sums[index]
            index -= index & -index
        }
        return total - sum
    }
}
