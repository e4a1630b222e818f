// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One of the small caches of ``WindowTrials``: which of the sampled keys it would hold with a window of a certain size.
struct WindowTrial: Sendable {
    /// Keys looked at for one victim; fewer than the real cache does, and the same for all trials.
    private static let samples = 4
    /// A key that would need more victims is not taken in.
    private static let mostVictims = 16

    private let index: Int
    private var window: [UInt16] = []
    private var head = 0
    private var main: [UInt16] = []
    private var windowUsed = 0
    private var used = 0

    /// A trial that keeps its keys' places under `index`.
    init(index: Int) {
        self.index = index
    }

    /// The bytes of memory taken.
    var bytes: Int { (window.capacity + main.capacity) * 2 }

    /// Takes a key in, which was asked for and is not held.
    mutating func insert(
        _ id: UInt16,
        capacity: Int,
        window windowCapacity: Int,
        beta: Int,
        now: UInt32,
        _ keys: inout TrialKeys,
        _ random: inout PolicyRandom
    ) {
        let size = Int(keys[id].size)
        guard size <= capacity else { return }
        used += size
        if size <= windowCapacity {
            keys.setPlace(id, index, .window)
            window.append(id)
            windowUsed += size
        } else {
            admit(id, isUsed: false, id, capacity, beta, now, &keys, &random)
        }
        while windowUsed > windowCapacity, head < window.count {
            let oldest = window[head]
            head += 1
            if head >= 64 {
                window.removeFirst(head)
                head = 0
            }
            windowUsed -= Int(keys[oldest].size)
            admit(oldest, isUsed: keys[oldest].place(index) == .usedInWindow, id, capacity, beta, now, &keys, &random)
        }
        while used > capacity, let least = drawLeast(below: main.count, beta, now, keys, &random) {
            main.swapAt(least.index, main.count - 1)
            let victim = main.removeLast()
            drop(victim, id, &keys)
        }
    }

    private mutating func admit(
        _ id: UInt16,
        isUsed: Bool,
        _ current: UInt16,
        _ capacity: Int,
        _ beta: Int,
        _ now: UInt32,
        _ keys: inout TrialKeys,
        _ random: inout PolicyRandom
    ) {
        let score = keys[id].score(beta, now)
        var end = main.count
        var missing = used - capacity
        while missing > 0 {
            guard main.count - end < Self.mostVictims, let least = drawLeast(below: end, beta, now, keys, &random),
                isUsed || least.score < score
            else { return drop(id, current, &keys) }
            end -= 1
            main.swapAt(least.index, end)
            missing -= Int(keys[main[end]].size)
        }
        while main.count > end { drop(main.removeLast(), current, &keys) }
        keys.setPlace(id, index, .main)
        main.append(id)
    }

    private func drawLeast(
        below end: Int,
        _ beta: Int,
        _ now: UInt32,
        _ keys: TrialKeys,
        _ random: inout PolicyRandom
    ) -> (index: Int, score: Int)? {
        guard end > 0 else { return nil }
        var least = (index: 0, score: Int.max)
        for _ in 0..<Self.samples {
            let candidate = random.next(below: end)
            let score = keys[main[candidate]].score(beta, now)
            if score < least.score { least = (candidate, score) }
        }
        return least
    }

    /// The key of the request under way stays listed, because the other trials may still take it in.
    private mutating func drop(_ id: UInt16, _ current: UInt16, _ keys: inout TrialKeys) {
        used -= Int(keys[id].size)
        keys.setPlace(id, index, .absent)
        if id != current { keys.release(id) }
    }
}
