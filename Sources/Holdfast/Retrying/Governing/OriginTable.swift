// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// One cell of state for each origin, in bounded number: where it is full, those go first that are idle and longest unused.
final class OriginTable<Cell: AnyObject & Sendable>: Sendable {
    private struct Entry {
        let cell: Cell
        var lastUse: MonotonicInstant
    }

    private let entries = Mutex<[OriginText: Entry]>([:])
    private let capacity: Int
    private let make: @Sendable (MonotonicInstant) -> Cell
    private let isIdle: @Sendable (Cell) -> Bool

    /// - Parameters:
    ///   - capacity: the most origins.
    ///   - isIdle: whether nothing is lost with a cell; quick, and calls nothing of the table.
    ///   - make: a cell for an origin that is met for the first time at this instant.
    init(
        capacity: Int,
        isIdle: @escaping @Sendable (Cell) -> Bool = { _ in true },
        make: @escaping @Sendable (MonotonicInstant) -> Cell
    ) {
        self.capacity = max(1, capacity)
        self.isIdle = isIdle
        self.make = make
    }

    /// How many origins are remembered.
    var count: Int { entries.withLock { $0.count } }

    /// The cell of an origin; one is made where there is none.
    func cell(of origin: OriginText, now: MonotonicInstant) -> Cell {
        entries.withLock { entries in
            if let index = entries.index(forKey: origin) {
                entries.values[index].lastUse = now
                return entries.values[index].cell
            }
            if entries.count >= capacity { makeRoom(&entries) }
            let cell = make(now)
            entries[OriginText(copying: origin)] = Entry(cell: cell, lastUse: now)
            return cell
        }
    }

    /// An eighth goes at once, so that sorting is paid for by many newcomers.
    private func makeRoom(_ entries: inout [OriginText: Entry]) {
        let ranked = entries.map { (origin: $0.key, isIdle: isIdle($0.value.cell), lastUse: $0.value.lastUse) }
            .sorted { left, right in
                left.isIdle == right.isIdle ? left.lastUse < right.lastUse : left.isIdle
            }
        for victim in ranked.prefix(max(1, capacity / 8)) { entries[victim.origin] = nil }
    }
}
