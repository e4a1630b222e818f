// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastStorage

/// Which keys are asked for, and by how many threads at once.
struct HitCase: Sendable {
    let name: String
    let isUniform: Bool
    let threads: Int

    static let all = [
        HitCase(name: "uniform-1KiB@1", isUniform: true, threads: 1),
        HitCase(name: "uniform-1KiB@2", isUniform: true, threads: 2),
        HitCase(name: "hot-1KiB@1", isUniform: false, threads: 1),
        HitCase(name: "hot-1KiB@2", isUniform: false, threads: 2),
    ]

    /// Blocks of memory allocated for a hit, counted in the turns of all cases.
    static let allocations = "allocations"
}

/// Entries to ask for, all there before the first turn.
struct Population: Sendable {
    static let bodyLength = 1 << 10
    static let now = StoreInstant(milliseconds: 1_000)

    let keys: [StoreKey]

    /// So many entries with keys of 68 bytes.
    init(entries: Int) {
        keys = (0..<max(1, entries)).map { number in
            let digits = "\(number)"
            let name = String(repeating: "0", count: max(0, 9 - digits.count)) + digits
            return StoreKey(Array("GET https://assets.example.com/application/scripts/bundle-\(name).js".utf8))
        }
    }

    private init(keys: [StoreKey]) {
        self.keys = keys
    }

    /// The first entry alone, its key in memory of its own.
    var firstAlone: Population { Population(keys: keys.prefix(1).map { StoreKey($0.bytes.map { $0 }) }) }

    /// The body of an entry: its number, again and again.
    static func body(_ number: Int) -> [UInt8] {
        (0..<bodyLength).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) }
    }

    /// The entries that one thread asks for in a turn, in this order.
    func order(_ count: Int, isUniform: Bool, seed: UInt64) -> [Int32] {
        guard isUniform else { return [Int32](repeating: 0, count: count) }
        var numbers = SeededNumbers(seed: seed)
        return (0..<count).map { _ in Int32(truncatingIfNeeded: Int.random(in: 0..<keys.count, using: &numbers)) }
    }
}
