// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension DensityTinyLFUPolicy {
    /// Takes an entry that is nowhere into the main part, or lets it go.
    mutating func admit(_ slot: Slot, isUsed: Bool, _ victims: inout [Slot]) {
        let missing = used - capacity
        if missing > 0 {
            guard let end = contest(score(slot), missing: missing, isSure: isUsed) else {
                forget(slot)
                return victims.append(slot)
            }
            evictMain(from: end, &victims)
        }
        entries[Int(slot)].place = .main
        mainCount += 1
        if !entries[Int(slot)].isListed {
            entries[Int(slot)].isListed = true
            main.append(slot)
        }
    }

    /// Draws victims until they free `missing` bytes: the index in ``main`` from which on they lie; nil if one of them
    /// scores no less than the candidate, or there are none.
    private mutating func contest(_ score: Int, missing: Int, isSure: Bool) -> Int? {
        var end = main.count
        var missing = missing
        var draws = 0
        while missing > 0 {
            draws += 1
            guard draws <= 8 + credit, let least = drawLeast(&end), isSure || least < score else {
                credit = max(0, credit - draws + 1)
                return nil
            }
            missing -= size(main[end])
        }
        return end
    }

    /// Draws entries before `end`, moves the one with the least score there and lowers `end` to it.
    mutating func drawLeast(_ end: inout Int) -> Int? {
        let now = self.now
        var least = Int.max
        var index = -1
        var drawn = 0
        while drawn < Self.samples, end > 0 {
            let candidate = random.next(below: end)
            let slot = main[candidate]
            guard entries[Int(slot)].place == .main else {
                // An item left behind. The last of the items that count takes its place, the last of all that one's.
                entries[Int(slot)].isListed = false
                end -= 1
                main.swapAt(candidate, end)
                main.swapAt(end, main.count - 1)
                main.removeLast()
                if index == end { index = candidate }
                continue
            }
            drawn += 1
            let score = score(entries[Int(slot)], now)
            if score < least {
                least = score
                index = candidate
            }
        }
        guard index >= 0 else { return nil }
        end -= 1
        main.swapAt(index, end)
        return least
    }

    /// Lets the entries go that lie in ``main`` from an index on.
    mutating func evictMain(from end: Int, _ victims: inout [Slot]) {
        while main.count > end {
            let slot = main[main.count - 1]
            main.removeLast()
            entries[Int(slot)].isListed = false
            mainCount -= 1
            forget(slot)
            victims.append(slot)
        }
    }

    private func score(_ slot: Slot) -> Int { score(entries[Int(slot)], now) }

    @inline(__always)
    private func score(_ entry: DensityEntry, _ now: UInt32) -> Int {
        DensityWeight.score(entry.weight(at: now), size: entry.size, beta: beta)
    }
}
