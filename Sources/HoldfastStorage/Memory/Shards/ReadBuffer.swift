// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The hits of a shard that the eviction policy has not been told of yet: a fixed number, the latest dropped when full.
struct ReadBuffer: Sendable {
    /// The most hits held.
    static let size = 64

    private var tickets = [SlotTicket](repeating: .none, count: Self.size)

    /// The hits held.
    private(set) var count = 0

    /// Notes a hit, or drops it.
    ///
    /// - Returns: whether this is a good moment to pass the hits on: at the half, and now and then from there on.
    mutating func note(_ ticket: SlotTicket) -> Bool {
        guard count < Self.size else { return true }
        tickets[count] = ticket
        count += 1
        return count >= Self.size / 2 && count % (Self.size / 8) == 0
    }

    /// Hands out the hits in their order and holds none.
    mutating func drain(_ body: (SlotTicket) -> Void) {
        for index in 0..<count { body(tickets[index]) }
        count = 0
    }
}

/// An entry's slot and in which of the slot's lives: who holds a ticket of an earlier life is told apart.
struct SlotTicket: Sendable, Hashable {
    /// The slot.
    let slot: UInt32
    /// Which life of the slot, from 1.
    let life: UInt32

    /// Stands for no slot.
    static let none = SlotTicket(slot: 0, life: 0)
}
