// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// What a cache would hit that knew every request to come: a measure of what is left to gain.
///
/// ``Rule/furthest`` is Belady's algorithm (1966): what is used again last of all leaves. No policy hits more when all
/// entries are of one size; with sizes neither rule is a proven bound, and ``Rule/largest`` mostly hits more objects.
/// Keeps 4 bytes for each request.
public struct BeladyBound: Sendable {
    /// Which entry leaves.
    public struct Rule: Sendable, Hashable, CustomStringConvertible {
        enum Form: Sendable, Hashable { case furthest, largest }

        let form: Form

        /// The one whose next use lies furthest ahead.
        public static let furthest = Rule(form: .furthest)
        /// The one of the largest product of size and distance to its next use.
        public static let largest = Rule(form: .largest)

        /// The name among the strategies' names.
        public var description: String { form == .furthest ? "belady" : "belady-size" }
    }

    private let trace: RequestTrace
    /// The number of the request that asks for the same key next; the largest number when none does.
    private let nextUses: [UInt32]

    /// Looks ahead in a trace, once for any number of replays.
    public init(_ trace: RequestTrace) {
        self.trace = trace
        var next = [UInt32](repeating: .max, count: trace.keyCount)
        var nextUses = [UInt32](repeating: .max, count: trace.requests.count)
        for (index, request) in trace.requests.enumerated().reversed() {
            nextUses[index] = next[Int(request.key)]
            next[Int(request.key)] = UInt32(truncatingIfNeeded: index)
        }
        self.nextUses = nextUses
    }

    /// Replays the whole trace in O(n log n) or, for ``Rule/largest``, a sample of 128 entries for each eviction.
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

/// A cache that is told the next use with each use.
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

    /// The largest product among 128 entries drawn at random, some of them twice.
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
