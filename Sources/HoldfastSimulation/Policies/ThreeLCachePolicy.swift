// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// Evicts what a model, trained on the requests themselves, expects to be requested last.
///
/// 3L-Cache of Zhou, Niu, Xiong, Fang and Wang, "3L-Cache: Low Overhead and Precise Learning-based Eviction Policy for Caches"
/// (FAST 2025), written from the paper's description and the behavior of its authors' program, with the same parameters.
///
/// - *Learning.* A window remembers the held keys and as many evicted ones, up to five times as many if that finds more hits. Once
///   entries are evicted, each request draws one key of the window. When that key is requested again (or leaves the window), it
///   becomes a training sample with a probability of a quarter: its age, its last three gaps, its size and its number of requests,
///   and how long the next request took. 65,536 samples make a model, ``BoostedTrees``; **until there is one the policy is LRU.**
/// - *Candidates.* A few hundredths of the entries at a time: new entries in the order of their arrival, once they take more than
///   their share; and the entries that a pointer reaches, which moves from the least recently used one and skips those used more
///   often than nearly all that were evicted in the last round.
/// - *Eviction.* Of each batch of candidates, half as many are evicted as were added, the largest forecast first. The others stay
///   candidates until they are used or the pointer has completed its round.
///
/// About 120 bytes for each entry and the same for each remembered one. A step is O(log n), except for training, which takes a
/// little more than a tenth of a second.
struct ThreeLCachePolicy: StepwiseEviction {
    /// What to minimize: misses, or missed bytes.
    enum Objective: Sendable {
        case objects, bytes
    }

    private static let features = 6
    /// One candidate in this many of a batch is evicted.
    private static let candidatesForVictim = 2
    private static let mostWindows = 6

    var capacity: Int
    var sizes = SlotSizes()
    private let objective: Objective
    private let lessonsForModel: Int
    private var random: SplitMix64
    private var now: UInt32 = 0

    // The held entries by slot: what is known of them, in the order of use, and in no order for drawing.
    private var known: [KnownKey] = []
    private var links = SlotLinks()
    private var order = SlotLinks.Ends()
    private var drawable: [Slot] = []
    private var places: [UInt32] = []
    /// The evicted keys that are remembered, oldest first.
    private var past = PastKeys()

    // Learning.
    private var model: BoostedTrees?
    private var rows: [Double] = []
    private var labels: [Double] = []
    private var trainedAt: UInt32 = 0
    private var isDrawing = false
    /// The longest time that a key waited in vain before it was forgotten, up to the last model and since.
    private var longestWaits: (before: UInt32, since: UInt32) = (0, 0)
    /// The size of the window as a multiple of the held keys, including these.
    private var windows = 2
    private var isWindowFull = false
    private var windowCounts = (requests: 0, hits: 0, hitsOfWindow: 0)

    // Candidates.
    private var forecasts: [Float] = []
    private var forecastCount = 0
    private var heap = ForecastHeap()
    private var victimsLeft = 0
    private var pointer: Slot?
    private var scanned = 0
    private var roundLength = 0
    private var newcomers = NewcomerQueue()
    private var rules = CandidateRules()

    /// A policy with this capacity in bytes; a negative number means 0.
    ///
    /// - Parameter lessons: how many training samples make a model.
    init(capacity: Int, objective: Objective, seed: UInt64, lessons: Int = 65_536) {
        self.capacity = max(0, capacity)
        self.objective = objective
        lessonsForModel = max(1, lessons)
        random = SplitMix64(seed: seed)
        if objective == .objects { rules.frequencyBound = .max }
    }

    var metadataBytes: Int {
        let ofSlots = known.capacity * MemoryLayout<KnownKey>.stride + drawable.capacity * 4 + places.capacity * 4
        let ofForecasts = forecasts.capacity * 4 + heap.bytes + newcomers.bytes
        return sizes.bytes + links.bytes + ofSlots + ofForecasts + past.bytes + (rows.capacity + labels.capacity) * 8
            + (model?.bytes ?? 0)
    }

    // MARK: Requests

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        now &+= 1
        if isWindowFull {
            windowCounts.requests += 1
            windowCounts.hits += 1
            windowCounts.hitsOfWindow += 1
        }
        learn(from: known[Int(slot)], waited: nil)
        known[Int(slot)].use(at: now)
        if pointer == slot { pointer = next(slot) == slot ? nil : next(slot) }
        dropForecast(slot)
        links.remove(slot, from: &order)
        links.prepend(slot, to: &order)
        drawAndForget()
    }

    mutating func prepare(key: UInt64) {
        now &+= 1
        if isWindowFull { windowCounts.requests += 1 }
        if let remembered = past[key] {
            if isWindowFull { windowCounts.hitsOfWindow += 1 }
            learn(from: remembered, waited: nil)
            past[key]?.use(at: now)
        }
        drawAndForget()
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        known.extend(through: slot, with: KnownKey())
        forecasts.extend(through: slot, with: .nan)
        places.extend(through: slot, with: 0)
        known[Int(slot)] = past.take(key) ?? KnownKey(key: key, at: now)
        known[Int(slot)].size = UInt32(clamping: size)
        sizes.set(slot, size: size)
        links.prepend(slot, to: &order)
        places[Int(slot)] = UInt32(truncatingIfNeeded: drawable.count)
        drawable.append(slot)
        if model != nil { newcomers.append(slot, key: key, size: size) }
    }

    mutating func leave(_ slot: Slot) {
        if pointer == slot { pointer = next(slot) == slot ? nil : next(slot) }
        dropForecast(slot)
        sizes.remove(slot)
        links.remove(slot, from: &order)
        let place = Int(places[Int(slot)])
        guard let last = drawable.popLast(), last != slot else { return }
        drawable[place] = last
        places[Int(last)] = UInt32(truncatingIfNeeded: place)
    }

    mutating func change(_ slot: Slot, to size: Int) {
        sizes.set(slot, size: size)
        known[Int(slot)].size = UInt32(clamping: size)
    }

    mutating func evictOne() -> Slot? {
        guard let slot = chooseVictim() else { return nil }
        isDrawing = true
        victimsLeft -= 1
        leave(slot)
        past.append(known[Int(slot)])
        return slot
    }

    /// The next entry toward the recently used ones; after the last one, the least recently used.
    private func next(_ slot: Slot) -> Slot? { links.before(slot) ?? order.last }

    // MARK: Learning

    /// Draws a key of the window, and forgets keys beyond it.
    private mutating func drawAndForget() {
        if isDrawing, drawable.count + past.count > 0 {
            let index = below(drawable.count + past.count)
            if index < drawable.count {
                known[Int(drawable[index])].draw(at: now)
            } else {
                past.draw(index - drawable.count, at: now)
            }
        }
        guard past.count >= count * (windows - 1) + 2 else { return }
        isWindowFull = true
        guard let forgotten = past.dropFirst() else { return }
        let waited = now &- forgotten.lastUse
        if learn(from: forgotten, waited: longestWaits.before &+ waited) {
            longestWaits.since = max(longestWaits.since, waited)
        }
    }

    /// Makes a training sample from a drawn key, now that its waiting time is known.
    ///
    /// - Parameter waited: the waiting time; nil: until now.
    @discardableResult
    private mutating func learn(from key: KnownKey, waited: UInt32?) -> Bool {
        guard key.isDrawn, model == nil || random.next() % 4 == 0 else { return false }
        withUnsafeTemporaryAllocation(of: Double.self, capacity: Self.features) { row in
            key.describe(at: key.drawnAt, in: row)
            rows.append(contentsOf: row)
        }
        labels.append(ForecastScale.log1p(Double(waited ?? now &- key.drawnAt)))
        if labels.count >= lessonsForModel, victimsLeft <= 0 { train() }
        return true
    }

    private mutating func train() {
        model = BoostedTrees(rows: rows, width: Self.features, labels: labels, seed: random.next())
        rows.removeAll(keepingCapacity: true)
        labels.removeAll(keepingCapacity: true)
        dropForecasts()
        longestWaits.before = longestWaits.since
        trainedAt = now
        guard windowCounts.requests > 1_000_000, isWindowFull else { return }
        let (requests, hits, ofWindow) = windowCounts
        let gained = ofWindow - hits
        // Makes the window longer while that finds another hundredth of the hits.
        if gained > 0, Double(gained) > 0.01 * Double(hits * (windows - 1)), windows - 1 < (requests - hits) / gained {
            windows = min(Self.mostWindows, windows + 1)
            isWindowFull = false
        }
        windowCounts = (0, 0, 0)
    }

    private mutating func below(_ count: Int) -> Int {
        Int(truncatingIfNeeded: random.next().multipliedFullWidth(by: UInt64(count)).high)
    }

    // MARK: Candidates

    private mutating func chooseVictim() -> Slot? {
        guard let oldest = order.last, model != nil else { return order.last }
        if victimsLeft <= 0 || forecastCount == 0 { victimsLeft = takeCandidates() / Self.candidatesForVictim }
        while let item = heap.popFirst() {
            guard holds(item.slot), forecasts[Int(item.slot)] == item.forecast else { continue }
            let key = known[Int(item.slot)]
            rules.noteVictim(frequency: key.frequency, isBehindPointer: key.lastUse <= rules.pointerTime)
            return item.slot
        }
        return oldest
    }

    /// Adds a batch of entries to the candidates.
    ///
    /// - Returns: how many.
    private mutating func takeCandidates() -> Int {
        if roundLength == 0 { roundLength = count }
        var batch = rules.batch(of: roundLength)
        var taken = newcomers.take(
            until: Int(Double(used) / 100 * Double(rules.newcomerShare)),
            atMost: batch + batch / 2
        ) { [known, sizes] slot, key in sizes.holds(slot) && known[Int(slot)].key == key }
        if Double(newcomers.bytesWaiting) <= Double(used) / 10 * Double(rules.newcomerShare) {
            var passed = 0
            while passed < batch, taken.count < roundLength, let slot = pointer ?? order.last {
                let isOldest = rules.isOldest(scanned, of: roundLength)
                if isOldest || Int(known[Int(slot)].frequency) - 1 < rules.frequencyBound {
                    taken.append(slot)
                    passed += 1
                }
                scanned += 1
                if scanned >= roundLength {
                    roundLength = count
                    batch = rules.batch(of: roundLength)
                    (scanned, passed) = (0, 0)
                    pointer = order.last
                    dropForecasts()
                    if objective == .bytes { rules.endRound(newcomersWaiting: newcomers.count) }
                } else {
                    pointer = next(slot)
                }
            }
            if let last = taken.last { rules.pointerTime = known[Int(last)].lastUse }
            rules.noteBatch(batch)
        }
        forecast(taken)
        return taken.count
    }

    private mutating func forecast(_ candidates: [Slot]) {
        guard let model else { return }
        let since = Double(now &- trainedAt)
        withUnsafeTemporaryAllocation(of: Double.self, capacity: Self.features) { row in
            for slot in candidates {
                known[Int(slot)].describe(at: now, in: row)
                let wait = ForecastScale.exp(model.predict(UnsafeBufferPointer(row)))
                // Forecasts of one round were made at different times; waiting times are converted to the same instant.
                let forecast = objective == .bytes ? Float(wait + since) : Float(wait * row[4])
                if forecasts[Int(slot)].isNaN { forecastCount += 1 }
                forecasts[Int(slot)] = forecast
                heap.insert(ForecastHeap.Item(forecast: forecast, slot: slot))
            }
        }
    }

    private mutating func dropForecast(_ slot: Slot) {
        guard !forecasts[Int(slot)].isNaN else { return }
        forecasts[Int(slot)] = .nan
        forecastCount -= 1
    }

    private mutating func dropForecasts() {
        for item in heap.items { dropForecast(item.slot) }
        heap = ForecastHeap()
    }
}

/// How many candidates are chosen, and which; the two shares adapt to their results.
private struct CandidateRules: Sendable {
    /// Entries used more often than this, without the first use, are skipped.
    var frequencyBound = 1
    /// Hundredths of the held bytes that new entries may take before they become candidates.
    private(set) var newcomerShare = 2
    /// When the entry at the pointer was last used.
    var pointerTime: UInt32 = 0
    /// Hundredths of the entries, the least recently used ones, that are chosen however often they were used.
    private var oldestShare = 1
    /// Victims and candidates among the oldest, and after them.
    private var oldest = (victims: 0, candidates: 0)
    private var later = (victims: 0, candidates: 0)
    /// Victims by the integer logarithm of their frequency.
    private var victims = [Int](repeating: 0, count: 16)

    func batch(of count: Int) -> Int { count > 2 ? min(1_024, count / 100 + 2) : 2 }

    /// Whether the entry that the pointer reaches after this many of a round is one of the oldest.
    mutating func isOldest(_ scanned: Int, of count: Int) -> Bool {
        if oldest.candidates == 0, scanned > count * oldestShare / 100 {
            oldest = later
            later = (0, 0)
        }
        return scanned <= count * oldestShare / 100 + 2
    }

    mutating func noteBatch(_ count: Int) { later.candidates += count }

    mutating func noteVictim(frequency: UInt16, isBehindPointer: Bool) {
        victims[15 - max(1, frequency).leadingZeroBitCount] += 1
        if isBehindPointer { later.victims += 1 }
    }

    mutating func endRound(newcomersWaiting: Int) {
        setFrequencyBound()
        if oldest.victims * later.candidates > later.victims * oldest.candidates {
            oldestShare = min(100, oldestShare + 1)
        } else {
            oldestShare = max(1, oldestShare - 1)
        }
        if oldest.victims + later.victims > newcomersWaiting {
            newcomerShare = min(100, newcomerShare + 1)
        } else {
            newcomerShare = max(1, newcomerShare / 2)
        }
        (oldest, later) = ((0, 0), (0, 0))
        victims = [Int](repeating: 0, count: 16)
    }

    /// Sets the bound so that 99 of 100 victims are below it, interpolating linearly within powers of two.
    private mutating func setFrequencyBound() {
        let wanted = 0.99 * Double(victims.reduce(0, +))
        var below = 0.0
        for (power, count) in victims.enumerated() {
            if below + Double(count) >= wanted {
                guard power > 0 else { return frequencyBound = 1 }
                let half = 1 << (power - 1)
                frequencyBound = half + Int((Double(half) * (wanted - below) / Double(count)).rounded(.up))
                return
            }
            below += Double(count)
        }
    }
}

/// What is known of a key of the window.
private struct KnownKey: Sendable {
    var key: UInt64 = 0
    private(set) var lastUse: UInt32 = 0
    private(set) var drawnAt: UInt32 = 0
    var size: UInt32 = 0
    /// The times between its last four uses, the latest first; 0 if there were fewer.
    private var gaps: (UInt32, UInt32, UInt32) = (0, 0, 0)
    private(set) var frequency: UInt16 = 1
    private(set) var isDrawn = false

    init() {}

    init(key: UInt64, at now: UInt32) {
        self.key = key
        lastUse = now
    }

    mutating func use(at now: UInt32) {
        gaps = (now &- lastUse, gaps.0, gaps.1)
        lastUse = now
        isDrawn = false
        if frequency < .max { frequency += 1 }
    }

    /// A key that is drawn again before it is used keeps its first draw.
    mutating func draw(at now: UInt32) {
        if !isDrawn { (isDrawn, drawnAt) = (true, now) }
    }

    func describe(at now: UInt32, in row: UnsafeMutableBufferPointer<Double>) {
        row[0] = Double(now &- lastUse)
        row[1] = Double(gaps.0)
        row[2] = Double(gaps.1)
        row[3] = Double(gaps.2)
        row[4] = Double(size)
        row[5] = Double(frequency)
    }
}

/// Evicted keys that are remembered, in the order of eviction.
private struct PastKeys: Sendable {
    private var items: [KnownKey?] = []
    private var head = 0
    /// For each key, its place in `items` as if none had ever been dropped from the front.
    private var places: [UInt64: Int] = [:]
    private var dropped = 0

    /// Keys that returned, whose places are empty, count until the oldest are dropped.
    var count: Int { items.count - head }
    var bytes: Int { items.capacity * MemoryLayout<KnownKey?>.stride + places.capacity * 17 }

    subscript(_ key: UInt64) -> KnownKey? {
        get { places[key].flatMap { items[$0 - dropped] } }
        set {
            if let place = places[key], let newValue { items[place - dropped] = newValue }
        }
    }

    mutating func append(_ key: KnownKey) {
        // The owner may hold one key in two slots.
        _ = take(key.key)
        places[key.key] = items.count + dropped
        items.append(key)
    }

    mutating func take(_ key: UInt64) -> KnownKey? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        defer { items[place - dropped] = nil }
        return items[place - dropped]
    }

    mutating func draw(_ index: Int, at now: UInt32) { items[head + index]?.draw(at: now) }

    mutating func dropFirst() -> KnownKey? {
        guard head < items.count else { return nil }
        let first = items[head]
        if let first { places[first.key] = nil }
        head += 1
        if head > 64, head > items.count / 2 {
            items.removeFirst(head)
            dropped += head
            head = 0
        }
        return first
    }
}

/// Entries that arrived since there is a model and were not candidates yet, oldest first.
private struct NewcomerQueue: Sendable {
    private var items: [(slot: UInt32, key: UInt64, size: Int)] = []
    private var head = 0
    private(set) var bytesWaiting = 0

    var count: Int { items.count - head }
    var bytes: Int { items.capacity * 24 }

    mutating func append(_ slot: UInt32, key: UInt64, size: Int) {
        items.append((slot, key, size))
        bytesWaiting += min(size, .max - bytesWaiting)
    }

    /// Removes the oldest until only this many bytes wait; returns those that are still held.
    mutating func take(until bytes: Int, atMost most: Int, isHeld: (UInt32, UInt64) -> Bool) -> [UInt32] {
        var taken: [UInt32] = []
        while bytesWaiting > bytes, taken.count < most, head < items.count {
            let (slot, key, size) = items[head]
            head += 1
            bytesWaiting -= min(size, bytesWaiting)
            if isHeld(slot, key) { taken.append(slot) }
        }
        if head > 64, head > items.count / 2 {
            items.removeFirst(head)
            head = 0
        }
        if count == 0 { bytesWaiting = 0 }
        return taken
    }
}

/// Forecasts, the largest first; obsolete ones are skipped when they come up.
private struct ForecastHeap: Sendable {
    struct Item: Sendable {
        let forecast: Float
        let slot: UInt32
    }

    private(set) var items: [Item] = []

    var bytes: Int { items.capacity * MemoryLayout<Item>.stride }

    mutating func insert(_ item: Item) {
        items.append(item)
        var index = items.count - 1
        while index > 0, items[(index - 1) / 2].forecast < items[index].forecast {
            items.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popFirst() -> Item? {
        guard let first = items.first, let last = items.popLast() else { return nil }
        guard !items.isEmpty else { return first }
        items[0] = last
        var index = 0
        while true {
            var most = index
            for child in [2 * index + 1, 2 * index + 2] where child < items.count {
                if items[child].forecast > items[most].forecast { most = child }
            }
            if most == index { return first }
            items.swapAt(index, most)
            index = most
        }
    }
}

/// The two functions that forecasts need, computed only with basic arithmetic, so that every platform gives the same results.
private enum ForecastScale {
    static func log1p(_ value: Double) -> Double { SimulationNumbers.logarithm(1 + value) }

    /// e to a power from -700 to 700; powers outside are clamped.
    static func exp(_ power: Double) -> Double {
        let power = max(-700, min(700, power))
        let whole = (power * 1.442_695_040_888_963_4).rounded()
        let rest = power - whole * 0.693_147_180_559_945_3
        var sum = 1.0
        for term in stride(from: 13.0, through: 1, by: -1) { sum = 1 + sum * rest / term }
        return Double(sign: .plus, exponent: Int(whole), significand: sum)
    }
}
