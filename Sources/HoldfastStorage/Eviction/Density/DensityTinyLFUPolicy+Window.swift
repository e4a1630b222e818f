// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension DensityTinyLFUPolicy {
    func bytes(_ share: Double) -> Int { Int(share * Double(capacity)) }

    mutating func enterWindow(_ slot: Slot) {
        entries[Int(slot)].place = .window
        windowUsed += size(slot)
        windowCount += 1
        // An entry whose slot left as many items behind as can be counted takes the place of the last of them.
        if entries[Int(slot)].staleItems == 31 {
            entries[Int(slot)].staleItems = 30
        } else {
            window.append(slot)
        }
    }

    /// A few entries at a time, so that a window that gets smaller does so bit by bit.
    mutating func trimWindow(_ victims: inout [Slot]) {
        for _ in 0..<16 {
            guard windowUsed > windowCapacity, let oldest = popWindow() else { break }
            admit(oldest.slot, isUsed: oldest.isUsed, &victims)
        }
        evict(&victims)
    }

    /// Takes the oldest entry out of the window; it is nowhere then, but counts as held.
    mutating func popWindow() -> (slot: Slot, isUsed: Bool)? {
        while let slot = window.popFirst() {
            guard passes(slot) else { continue }
            let isUsed = entries[Int(slot)].place == .usedInWindow
            entries[Int(slot)].place = .absent
            windowUsed -= size(slot)
            windowCount -= 1
            return (slot, isUsed)
        }
        return nil
    }

    /// Whether the next item for a slot is that of an entry in the window, and not one left behind.
    private mutating func passes(_ slot: Slot) -> Bool {
        guard entries[Int(slot)].staleItems > 0 else { return true }
        entries[Int(slot)].staleItems -= 1
        return false
    }

    /// Drops the items left behind once they are the most.
    mutating func compact() {
        if window.count > 2 * windowCount + 64 {
            var entries = entries
            self.entries = CompactArray()
            window.keep { slot in
                guard entries[Int(slot)].staleItems > 0 else { return true }
                entries[Int(slot)].staleItems -= 1
                return false
            }
            self.entries = entries
        }
        if main.count > 2 * mainCount + 64 {
            var entries = entries
            self.entries = CompactArray()
            main.keep { slot in
                if entries[Int(slot)].place != .main { entries[Int(slot)].isListed = false }
                return entries[Int(slot)].isListed
            }
            self.entries = entries
        }
    }
}
