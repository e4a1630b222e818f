// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Chooses one of a few stripes for the running thread, so that threads that count at the same time seldom share one.
package enum ThreadStripe {
    /// The stripe of this thread, 0 ..< `count`, which is a power of two.
    ///
    /// Chosen by the address of the running thread's stack, which costs less than asking for the thread's identity.
    package static func current(of count: Int) -> Int {
        var here: UInt8 = 0
        let place = withUnsafeMutablePointer(to: &here) { UInt(bitPattern: $0) }
        return Int(truncatingIfNeeded: (place >> 16 &* 0x9E37_79B9) >> 8 & UInt(count - 1))
    }
}

/// A sum that threads can add to at the same time without waiting for each other.
final class StripedCounter: Sendable {
    /// A number followed by a hundred bytes of padding, so that no two share a cache line.
    private struct Stripe: ~Copyable, Sendable {
        let sum = Atomic(0)
        private let room: (Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int) = (
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
        )
    }

    private let first = Stripe()
    private let second = Stripe()
    private let third = Stripe()
    private let fourth = Stripe()

    /// The sum; concurrent additions may or may not be included.
    var value: Int {
        first.sum.load(ordering: .relaxed) &+ second.sum.load(ordering: .relaxed)
            &+ third.sum.load(ordering: .relaxed) &+ fourth.sum.load(ordering: .relaxed)
    }

    func add(_ count: Int) {
        switch ThreadStripe.current(of: 4) {
        case 0: first.sum.add(count, ordering: .relaxed)
        case 1: second.sum.add(count, ordering: .relaxed)
        case 2: third.sum.add(count, ordering: .relaxed)
        default: fourth.sum.add(count, ordering: .relaxed)
        }
    }
}

/// The hits of a shard that have not been reported to the eviction policy yet: a fixed number, the latest dropped if full.
struct ReadBuffer: Sendable {
    /// The most hits held.
    static let size = 64

    private var handles = [SlotHandle](repeating: .none, count: Self.size)

    /// The instant of the latest lookup since the last ``drain(_:)``.
    var latestNow: StoreInstant?

    /// The hits held.
    private(set) var count = 0

    /// Notes a hit, or drops it.
    ///
    /// - Returns: whether this is a good moment to pass the hits on: when half full, and now and then from there on.
    mutating func note(_ handle: SlotHandle) -> Bool {
        guard count < Self.size else { return true }
        handles[count] = handle
        count += 1
        return count >= Self.size / 2 && count % (Self.size / 8) == 0
    }

    /// Passes the hits to `body` in order, and clears them.
    ///
    /// - Returns: ``latestNow``.
    @discardableResult
    mutating func drain(_ body: (SlotHandle) -> Void) -> StoreInstant? {
        for index in 0..<count { body(handles[index]) }
        count = 0
        defer { latestNow = nil }
        return latestNow
    }
}

/// An entry's slot and which of the slot's lives it belongs to, so that handles of earlier lives are recognized.
struct SlotHandle: Sendable, Hashable {
    /// The slot.
    let slot: UInt32
    /// Which life of the slot, from 1.
    let life: UInt32

    /// Stands for no slot.
    static let none = SlotHandle(slot: 0, life: 0)
}
