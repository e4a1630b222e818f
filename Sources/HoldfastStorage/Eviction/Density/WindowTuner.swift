// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Chooses the window's part of the capacity with small simulated caches, each with a different window, over a sample of the keys.
///
/// Four miniature caches with ``DensityTinyLFUPolicy``'s rules run beside the real cache on the same keys, so that their hits
/// compare fairly; the window of the one with the most recent hits is used. A change in the requests shows in all four at once,
/// while hill climbing on the real cache would need many steps and could mistake the change for its own effect. At most 2,048
/// keys, whatever the cache's size.
package struct WindowTuner: Sendable {
    /// The parts of the capacity that are tried.
    package static let shares = [0.01, 0.10, 0.30, 0.70]
    /// The entries that a miniature cache is meant to hold; up to twice as many before the sample is halved.
    private static let entries = 128
    private static let mostKeys = 2_048
    /// The weight of a cache's hits after a quarter of ``entries``: half after four times as many sampled requests.
    private static let fading = 0.9576

    private var keys = SampledKeys()
    private var caches = WindowTuner.shares.indices.map { MiniatureCache(index: $0) }
    private var hits = WindowTuner.shares.map { _ in 0.0 }
    private var random: PolicyRandom
    private let beta: Int
    /// Each step drops half of the sampled keys.
    package private(set) var samplingShift: UInt32 = 0
    private var requests = 0
    private var best = 1

    /// A tuner of a new cache; `beta` in 1/1024.
    package init(beta: Int, seed: UInt64) {
        self.beta = beta
        random = PolicyRandom(seed: ~seed)
    }

    /// The window's part of the capacity.
    package var share: Double { Self.shares[best] }
    /// The bytes of memory used.
    package var bytes: Int { keys.bytes + caches.reduce(0) { $0 + $1.bytes } }

    /// Whether the tuner samples the key with this hash.
    package func samples(_ hash: UInt32) -> Bool { Self.samples(hash, samplingShift: samplingShift) }

    /// Whether a tuner with this ``samplingShift`` samples the key with this hash; with 32 it samples none.
    package static func samples(_ hash: UInt32, samplingShift: UInt32) -> Bool {
        samplingShift < 32 && (hash &* 0x9E37_79B1) >> (32 - samplingShift) == 0
    }

    /// The number of entries in the full cache, estimated from the held ones and their bytes.
    package static func expected(held: Int, used: Int, capacity: Int) -> Int {
        guard held >= 32, used > 0, used < capacity else { return held }
        return Int(min(Double(held) * Double(capacity) / Double(used), 1e9))
    }

    /// Plays a request for a sampled key.
    ///
    /// - Parameters:
    ///   - weight: of the key's frequency, including this request.
    ///   - capacity: the cache's bytes.
    ///   - expected: the number of entries in the full cache.
    package mutating func note(_ hash: UInt32, size: Int, weight: Int32, now: UInt32, capacity: Int, expected: Int) {
        fit(expected)
        guard samples(hash) else { return }
        let id = keys.note(hash, size: UInt32(clamping: size), weight: weight, now: now)
        for index in caches.indices {
            switch keys[id].place(index) {
            case .main, .usedInWindow: hits[index] += 1
            case .window:
                hits[index] += 1
                keys.setPlace(id, cache: index, place: .usedInWindow)
            case .absent:
                let request = MiniatureCache.Request(
                    id: id,
                    capacity: capacity >> Int(samplingShift),
                    beta: beta,
                    now: now
                )
                caches[index].insert(request, window: Self.shares[index], keys: &keys, random: &random)
            }
        }
        keys.release(id)
        requests += 1
        if requests >= max(64, expected >> Int(samplingShift) / 4) { choose() }
    }

    private mutating func choose() {
        requests = 0
        for index in hits.indices where hits[index] > hits[best] { best = index }
        for index in hits.indices { hits[index] *= Self.fading }
    }

    /// Starts again if the sample is too small or too large for the cache's entries, or if the caches hold too many keys.
    ///
    /// A cache may hold few entries although many keys are seen, because its owner removes them. Then they start again with
    /// the same sample: a smaller one would be too small for the entries at the next request.
    private mutating func fit(_ expected: Int) {
        let held = expected >> Int(samplingShift)
        let isFew = held < Self.entries / 4
        if isFew, samplingShift > 0 {
            samplingShift -= 1
        } else if held > 2 * Self.entries || keys.count > Self.mostKeys {
            if !isFew, samplingShift < 31 { samplingShift += 1 }
        } else {
            return
        }
        keys = SampledKeys()
        caches = Self.shares.indices.map { MiniatureCache(index: $0) }
    }
}

/// One of the small caches of ``WindowTuner``: which of the sampled keys it would hold with its window size.
struct MiniatureCache: Sendable {
    /// Keys examined for one victim; fewer than in the real cache, and the same for all of them.
    private static let samples = 4
    /// A key that would need more victims is not admitted.
    private static let mostVictims = 16

    private let index: Int
    private var window: [UInt16] = []
    private var head = 0
    private var main: [UInt16] = []
    private var windowUsed = 0
    private var used = 0

    /// A cache that stores its keys' places under `index`.
    init(index: Int) { self.index = index }

    /// The bytes of memory used.
    var bytes: Int { (window.capacity + main.capacity) * 2 }

    /// A request for a key, and what every step for it needs.
    struct Request {
        let id: UInt16
        /// The bytes of the cache.
        let capacity: Int
        let beta: Int
        let now: UInt32
    }

    /// Admits a key that was requested and is not held; `window` is the window's part of the capacity.
    mutating func insert(_ request: Request, window: Double, keys: inout SampledKeys, random: inout PolicyRandom) {
        let (id, capacity) = (request.id, request.capacity)
        let windowCapacity = Int(window * Double(capacity))
        let size = Int(keys[id].size)
        guard size <= capacity else { return }
        used += size
        if size <= windowCapacity {
            keys.setPlace(id, cache: index, place: .window)
            self.window.append(id)
            windowUsed += size
        } else {
            admit(id, isUsed: false, request: request, keys: &keys, random: &random)
        }
        while windowUsed > windowCapacity, head < self.window.count {
            let oldest = self.window[head]
            head += 1
            if head >= 64 {
                self.window.removeFirst(head)
                head = 0
            }
            windowUsed -= Int(keys[oldest].size)
            let isUsed = keys[oldest].place(index) == .usedInWindow
            admit(oldest, isUsed: isUsed, request: request, keys: &keys, random: &random)
        }
        while used > capacity, let least = drawLeast(below: main.count, request: request, keys: keys, random: &random) {
            main.swapAt(least.index, main.count - 1)
            let victim = main.removeLast()
            drop(victim, current: id, keys: &keys)
        }
    }

    private mutating func admit(
        _ id: UInt16,
        isUsed: Bool,
        request: Request,
        keys: inout SampledKeys,
        random: inout PolicyRandom
    ) {
        let score = keys[id].score(request.beta, now: request.now)
        var end = main.count
        var missing = used - request.capacity
        while missing > 0 {
            guard main.count - end < Self.mostVictims,
                let least = drawLeast(below: end, request: request, keys: keys, random: &random),
                isUsed || least.score < score
            else { return drop(id, current: request.id, keys: &keys) }
            end -= 1
            main.swapAt(least.index, end)
            missing -= Int(keys[main[end]].size)
        }
        while main.count > end { drop(main.removeLast(), current: request.id, keys: &keys) }
        keys.setPlace(id, cache: index, place: .main)
        main.append(id)
    }

    private func drawLeast(
        below end: Int,
        request: Request,
        keys: SampledKeys,
        random: inout PolicyRandom
    ) -> (index: Int, score: Int)? {
        guard end > 0 else { return nil }
        var least = (index: 0, score: Int.max)
        for _ in 0..<Self.samples {
            let candidate = random.next(below: end)
            let score = keys[main[candidate]].score(request.beta, now: request.now)
            if score < least.score { least = (candidate, score) }
        }
        return least
    }

    /// The key of the current request stays listed, because the other caches may still admit it.
    private mutating func drop(_ id: UInt16, current: UInt16, keys: inout SampledKeys) {
        used -= Int(keys[id].size)
        keys.setPlace(id, cache: index, place: .absent)
        if id != current { keys.release(id) }
    }
}

/// A key that a miniature cache of ``WindowTuner`` holds.
struct SampledKey: Sendable {
    let hash: UInt32
    let size: UInt32
    /// The weight of the frequency as ``DensityWeight`` packs it; in the lowest bits, 2 bits for the place in each of four caches.
    private var bits: UInt32

    init(hash: UInt32, size: UInt32, weight: Int32, now: UInt32) {
        self.hash = hash
        self.size = size
        bits = DensityWeight.pack(weight, at: now, over: 0)
    }

    /// Whether no cache holds the key.
    var isFree: Bool { bits & 0xFF == 0 }

    /// Where a cache has the key.
    func place(_ cache: Int) -> DensityEntry.Place {
        DensityEntry.Place(rawValue: bits >> UInt32(2 * cache) & 3) ?? .absent
    }

    /// Stores where a cache has the key.
    mutating func setPlace(_ cache: Int, place: DensityEntry.Place) {
        bits = bits & ~(3 << UInt32(2 * cache)) | place.rawValue << UInt32(2 * cache)
    }

    /// Stores the weight of the frequency.
    mutating func setWeight(_ weight: Int32, at now: UInt32) {
        bits = DensityWeight.pack(weight, at: now, over: bits)
    }

    /// The score that decides between two keys; `beta` in 1/1024.
    func score(_ beta: Int, now: UInt32) -> Int {
        DensityWeight.score(DensityWeight.unpack(bits, at: now), size: size, beta: beta)
    }
}

/// The keys that the miniature caches hold, found by hash: an open-addressing table, every step O(1).
struct SampledKeys: Sendable {
    private var keys: [SampledKey] = []
    private var free: [UInt16] = []
    /// The number of a key plus 1; 0 if there is none.
    private var table = [UInt16](repeating: 0, count: 256)

    /// The number of held keys.
    var count: Int { keys.count - free.count }
    /// The bytes of memory used.
    var bytes: Int { keys.capacity * MemoryLayout<SampledKey>.stride + (free.capacity + table.capacity) * 2 }

    /// The key with a number.
    subscript(_ id: UInt16) -> SampledKey { keys[Int(id)] }

    /// Stores where a cache has a key.
    mutating func setPlace(_ id: UInt16, cache: Int, place: DensityEntry.Place) {
        keys[Int(id)].setPlace(cache, place: place)
    }

    /// The number of the key with this hash, assigned if it has none; sets its weight.
    mutating func note(_ hash: UInt32, size: UInt32, weight: Int32, now: UInt32) -> UInt16 {
        var index = home(hash)
        while table[index] != 0 {
            let id = table[index] - 1
            if keys[Int(id)].hash == hash {
                keys[Int(id)].setWeight(weight, at: now)
                return id
            }
            index = (index + 1) & (table.count - 1)
        }
        let key = SampledKey(hash: hash, size: size, weight: weight, now: now)
        let id = free.popLast() ?? UInt16(truncatingIfNeeded: keys.count)
        if id == keys.count { keys.append(key) } else { keys[Int(id)] = key }
        table[index] = id + 1
        if count > table.count / 2 { grow() }
        return id
    }

    /// Removes a key that no cache holds.
    mutating func release(_ id: UInt16) {
        guard keys[Int(id)].isFree else { return }
        free.append(id)
        var hole = home(keys[Int(id)].hash)
        while table[hole] != id + 1 { hole = (hole + 1) & (table.count - 1) }
        // Moves up the keys behind that would not be found past a hole.
        var index = hole
        while true {
            index = (index + 1) & (table.count - 1)
            if table[index] == 0 { break }
            let wish = home(keys[Int(table[index] - 1)].hash)
            if (index - wish) & (table.count - 1) >= (index - hole) & (table.count - 1) {
                table[hole] = table[index]
                hole = index
            }
        }
        table[hole] = 0
    }

    private func home(_ hash: UInt32) -> Int {
        // Other bits than those that chose the sample.
        Int(truncatingIfNeeded: (hash &* 0x85EB_CA6B) >> 7) & (table.count - 1)
    }

    private mutating func grow() {
        let old = table
        table = [UInt16](repeating: 0, count: old.count * 2)
        for item in old where item != 0 {
            var index = home(keys[Int(item - 1)].hash)
            while table[index] != 0 { index = (index + 1) & (table.count - 1) }
            table[index] = item
        }
    }
}
