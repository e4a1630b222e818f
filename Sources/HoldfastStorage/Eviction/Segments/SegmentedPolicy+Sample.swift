// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Worths of entries, one by one and drawn at random.
extension SegmentedPolicy {
    func worth(_ entry: SegmentedEntry) -> Int32 {
        EntryWorth.of(frequency: sketch.estimate(entry.hash), wasUsed: entry.uses > 0, bytes: cost(entry.size))
    }

    /// Worths of entries drawn at random, of all where there are few.
    mutating func drawSample() -> WorthSample {
        var draws: [WorthSample.Draw] = []
        draws.reserveCapacity(WorthSample.size)
        if count <= WorthSample.size {
            for (number, segment) in segments.enumerated() {
                for slot in segment?.entries ?? [] { draw(slot, of: number, &draws) }
            }
            return WorthSample(draws, entries: draws.count)
        }
        var ends: [Int] = []
        var sum = 0
        for segment in segments {
            sum += segment?.entries.count ?? 0
            ends.append(sum)
        }
        var tries = 4 * WorthSample.size
        while draws.count < WorthSample.size, tries > 0 {
            tries -= 1
            let target = random.next(below: sum)
            var (low, high) = (0, ends.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if ends[middle] > target { high = middle } else { low = middle + 1 }
            }
            guard let list = segments[low]?.entries else { continue }
            draw(list[target - (ends[low] - list.count)], of: low, &draws)
        }
        return WorthSample(draws, entries: count)
    }

    private func draw(_ slot: Slot, of segment: Int, _ draws: inout [WorthSample.Draw]) {
        let entry = entries[Int(slot)]
        guard entry.segment == UInt16(truncatingIfNeeded: segment) else { return }
        draws.append(
            WorthSample.Draw(
                worth: worth(entry),
                bytes: cost(entry.size),
                segment: UInt16(truncatingIfNeeded: segment)
            )
        )
    }
}
