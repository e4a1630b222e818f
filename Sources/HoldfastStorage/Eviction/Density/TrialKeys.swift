// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A key that a trial of ``WindowTrials`` holds.
struct TrialKey: Sendable {
    let hash: UInt32
    let size: UInt32
    /// The weight of the frequency as ``DensityWeight`` packs it; below it 2 bits of the place in each of four trials.
    private var bits: UInt32

    init(hash: UInt32, size: UInt32, weight: Int32, now: UInt32) {
        self.hash = hash
        self.size = size
        bits = DensityWeight.pack(weight, at: now, over: 0)
    }

    /// Whether no trial holds the key.
    var isFree: Bool { bits & 0xFF == 0 }

    /// Where a trial has the key.
    func place(_ trial: Int) -> DensityEntry.Place {
        DensityEntry.Place(rawValue: bits >> UInt32(2 * trial) & 3) ?? .absent
    }

    /// Notes where a trial has the key.
    mutating func setPlace(_ trial: Int, _ place: DensityEntry.Place) {
        bits = bits & ~(3 << UInt32(2 * trial)) | place.rawValue << UInt32(2 * trial)
    }

    /// Notes the weight of the frequency.
    mutating func setWeight(_ weight: Int32, at now: UInt32) {
        bits = DensityWeight.pack(weight, at: now, over: bits)
    }

    /// What decides between two keys; `beta` in 1/1024.
    func score(_ beta: Int, _ now: UInt32) -> Int {
        DensityWeight.score(DensityWeight.unpack(bits, at: now), size: size, beta: beta)
    }
}

/// The keys that the trials hold, found by hash: a table of open addressing, every step O(1).
struct TrialKeys: Sendable {
    private var keys: [TrialKey] = []
    private var free: [UInt16] = []
    /// The number of a key plus 1; 0 where there is none.
    private var table = [UInt16](repeating: 0, count: 256)

    /// The keys held.
    var count: Int { keys.count - free.count }
    /// The bytes of memory taken.
    var bytes: Int { keys.capacity * MemoryLayout<TrialKey>.stride + (free.capacity + table.capacity) * 2 }

    /// The key with a number.
    subscript(_ id: UInt16) -> TrialKey { keys[Int(id)] }

    /// Notes where a trial has a key.
    mutating func setPlace(_ id: UInt16, _ trial: Int, _ place: DensityEntry.Place) {
        keys[Int(id)].setPlace(trial, place)
    }

    /// The number of the key with this hash, which gets one if it has none, and a new weight.
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
        let key = TrialKey(hash: hash, size: size, weight: weight, now: now)
        let id = free.popLast() ?? UInt16(truncatingIfNeeded: keys.count)
        if id == keys.count { keys.append(key) } else { keys[Int(id)] = key }
        table[index] = id + 1
        if count > table.count / 2 { grow() }
        return id
    }

    /// Lets a key go that no trial holds.
    mutating func release(_ id: UInt16) {
        guard keys[Int(id)].isFree else { return }
        free.append(id)
        var hole = home(keys[Int(id)].hash)
        while table[hole] != id + 1 { hole = (hole + 1) & (table.count - 1) }
        // Those behind move up that would not be found past a hole.
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
        // Not the bits that chose the sample.
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
