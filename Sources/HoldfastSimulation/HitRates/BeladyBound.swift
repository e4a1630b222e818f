// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// The hits of a cache that knows all future requests: how much could still be gained.
///
/// ``Rule/furthest`` is Belady's algorithm (1966): the entry whose next use is furthest in the future is evicted. If all entries
/// have the same size, no policy that admits every response has more hits. A policy that rejects some, as several here do, can
/// have more. With different sizes, neither rule is a proven bound, and ``Rule/largest`` usually hits more objects. As for
/// ``HitRateSimulator``, another size of a key is another version unless it is told otherwise; lives are ignored. Uses 4 bytes
/// for each request.
public struct BeladyBound: Sendable {
    /// Which entry is evicted.
    public struct Rule: Sendable, Hashable, CustomStringConvertible {
        enum Form: Sendable, Hashable { case furthest, largest }

        let form: Form

        /// The one whose next use is furthest in the future.
        public static let furthest = Rule(form: .furthest)
        /// The one with the largest product of size and distance to its next use.
        public static let largest = Rule(form: .largest)

        /// The name, as for the strategies.
        public var description: String { form == .furthest ? "belady" : "belady-size" }
    }

    private let trace: RequestTrace
    private let sizesTellVersions: Bool
    /// The number of the next request that this one's copy could be a hit for; the largest number if there is none.
    private let nextUses: [UInt32]

    /// Looks ahead in a trace, once for any number of replays.
    ///
    /// - Parameters:
    ///   - trace: the requests.
    ///   - sizesTellVersions: as for ``HitRateSimulator/init(warmUp:sizesTellVersions:)``; true by default.
    public init(_ trace: RequestTrace, sizesTellVersions: Bool = true) {
        self.trace = trace
        self.sizesTellVersions = sizesTellVersions
        var next = [UInt32](repeating: .max, count: trace.keyCount)
        var nextUses = [UInt32](repeating: .max, count: trace.requests.count)
        for (index, request) in trace.requests.enumerated().reversed() {
            let use = next[Int(request.key)]
            let isSame = use == .max || !sizesTellVersions || trace.requests[Int(use)].size == request.size
            nextUses[index] = isSame ? use : .max
            next[Int(request.key)] = UInt32(truncatingIfNeeded: index)
        }
        self.nextUses = nextUses
    }

    /// Replays the whole trace in O(n log n) or, for ``Rule/largest``, with a sample of 128 entries for each eviction.
    public func replay(_ rule: Rule, capacity: Int) -> HitRateResult {
        var result = HitRateResult(policy: rule.description, capacity: capacity)
        switch rule.form {
        case .furthest:
            var cache = FurthestUse()
            replay(on: &cache, &result)
        case .largest:
            var cache = LargestDistance()
            replay(on: &cache, &result)
        }
        return result
    }

    private func replay(on cache: inout some ForeseeingCache, _ result: inout HitRateResult) {
        for (now, request) in trace.requests.enumerated() {
            let size = Int(request.size)
            result.requests += 1
            result.requestedBytes += size
            if sizesTellVersions, cache.sizes.holds(request.key), cache.sizes[request.key] != size {
                cache.remove(request.key)
            }
            if cache.sizes.holds(request.key) {
                result.hits += 1
                result.hitBytes += size
            } else {
                guard size <= result.capacity else { continue }
                while cache.sizes.sum > result.capacity - size, let victim = cache.victim(now) {
                    cache.remove(victim)
                    result.evictions += 1
                }
                result.writtenBytes += size
                cache.sizes.set(request.key, size: size)
            }
            cache.use(request.key, next: nextUses[now])
        }
    }
}

/// A cache that learns the next use with each use.
private protocol ForeseeingCache {
    var sizes: SlotSizes { get set }
    mutating func use(_ key: UInt32, next: UInt32)
    mutating func victim(_ now: Int) -> UInt32?
    mutating func remove(_ key: UInt32)
}

private struct FurthestUse: ForeseeingCache {
    var sizes = SlotSizes()
    private var heap = RankHeap()

    mutating func use(_ key: UInt32, next: UInt32) { heap.set(key, rank: UInt64(UInt32.max - next)) }

    func victim(_ now: Int) -> UInt32? { heap.first }

    mutating func remove(_ key: UInt32) {
        heap.remove(key)
        sizes.remove(key)
    }
}

private struct LargestDistance: ForeseeingCache {
    var sizes = SlotSizes()
    private var keys: [UInt32] = []
    private var places: [UInt32] = []
    private var nexts: [UInt32] = []
    private var random: UInt64 = 88_172_645_463_325_252

    mutating func use(_ key: UInt32, next: UInt32) {
        places.extend(through: key, with: .max)
        nexts.extend(through: key, with: 0)
        nexts[Int(key)] = next
        guard places[Int(key)] == .max else { return }
        places[Int(key)] = UInt32(keys.count)
        keys.append(key)
    }

    /// The entry with the largest product among 128 entries drawn at random, possibly with repetitions.
    mutating func victim(_ now: Int) -> UInt32? {
        guard !keys.isEmpty else { return nil }
        var best = keys[0]
        var most = -1.0
        for _ in 0..<128 {
            random ^= random << 13
            random ^= random >> 7
            random ^= random << 17
            let key = keys[Int(random.multipliedFullWidth(by: UInt64(keys.count)).high)]
            let next = nexts[Int(key)]
            let score = Double(sizes[key]) * (next == .max ? 0x1p63 : Double(Int(next) - now))
            if score > most { (best, most) = (key, score) }
        }
        return best
    }

    mutating func remove(_ key: UInt32) {
        let place = Int(places[Int(key)])
        places[Int(key)] = .max
        sizes.remove(key)
        guard let last = keys.popLast(), last != key else { return }
        keys[place] = last
        places[Int(last)] = UInt32(place)
    }
}
