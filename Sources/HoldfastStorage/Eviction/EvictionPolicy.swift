// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides which entries a bounded store holds, from keys and sizes alone.
///
/// A policy sees no content, takes no lock and reads no clock. The same calls in the same order give the same results; a policy
/// that uses random numbers gets a seed.
///
/// **Use.** ``EvictionStrategy`` makes one. The owner identifies entries by slots: small numbers of its choice that it may reuse
/// once the entry has left. Policies keep tables as long as the highest slot.
/// **Implement.** Keep these promises: ``used`` is at most ``capacity`` whenever a call returns. An inserted slot is held until it
/// is returned as a victim or removed, and it is returned at most once. A call takes constant time, or time proportional to the
/// victims, times a logarithm if the policy needs an order.
public protocol EvictionPolicy: Sendable {
    /// Identifies an entry of the owner.
    typealias Slot = UInt32

    /// The most bytes that the held entries may take together.
    var capacity: Int { get }
    /// Bytes of the held entries.
    var used: Int { get }
    /// The number of held entries.
    var count: Int { get }
    /// Bytes that the policy copied within the store to keep entries; 0 if it leaves them in place.
    var bytesMoved: Int { get }
    /// Bytes of memory that the policy's own tables take.
    var metadataBytes: Int { get }

    /// Whether the entry in `slot` is held.
    func holds(_ slot: Slot) -> Bool

    /// Records that the entry in `slot` was used; does nothing if it is not held.
    mutating func use(_ slot: Slot)

    /// Offers a new entry, which was requested and not found.
    ///
    /// - Parameters:
    ///   - slot: not held now.
    ///   - key: a hash of the entry's key with all bits mixed; the same whenever the key returns.
    ///   - size: bytes; a negative number counts as 0.
    ///   - victims: receives the slots that leave, including `slot` if the entry is not admitted.
    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot])

    /// Removes an entry that the owner gave up; does nothing if it is not held.
    mutating func remove(_ slot: Slot)

    /// Changes the size of a held entry; `victims` receives the slots that leave, possibly `slot` itself.
    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot])

    /// Changes the capacity; `victims` receives the slots that leave so that the rest fits.
    mutating func setCapacity(_ capacity: Int, victims: inout [Slot])
}

extension EvictionPolicy {
    /// No bytes are moved.
    public var bytesMoved: Int { 0 }
}

/// Names an eviction policy and makes it.
///
/// Two strategies with the same name are equal. The strategies of the tiers are here; published ones and the model of the disk tier
/// are in HoldfastSimulation. The measurements behind the choice are in docs/measuring-hit-rates.md.
public struct EvictionStrategy: Sendable, Hashable, CustomStringConvertible {
    /// The name: lower-case letters, digits and hyphens.
    public let description: String
    private let make: @Sendable (_ capacity: Int, _ seed: UInt64) -> any EvictionPolicy

    /// A strategy of your own, for ``MemoryStore`` and the simulator.
    ///
    /// - Parameters:
    ///   - name: tells it from other strategies.
    ///   - makePolicy: makes an empty policy with this capacity in bytes (never negative). It draws any random numbers from the
    ///     seed.
    public init(
        named name: String,
        makePolicy: @escaping @Sendable (_ capacity: Int, _ seed: UInt64) -> any EvictionPolicy
    ) {
        description = name
        make = makePolicy
    }

    /// The memory tier's strategy: ``densityTinyLFU(beta:)`` with 0.5.
    public static let memory = EvictionStrategy(named: "memory") { capacity, seed in
        DensityTinyLFUPolicy(capacity: capacity, beta: 0.5, seed: seed)
    }

    /// Keeps what was recently used most often for its bytes^beta: 0 for byte hits, 1 for object hits. A beta out of range is
    /// clamped.
    public static func densityTinyLFU(beta: Double) -> EvictionStrategy {
        let beta = beta > 0 ? min(1, beta) : 0
        return EvictionStrategy(named: "dtlfu-\(beta)") { capacity, seed in
            DensityTinyLFUPolicy(capacity: capacity, beta: beta, seed: seed)
        }
    }

    /// An empty policy.
    ///
    /// - Parameters:
    ///   - capacity: bytes; a negative number means 0.
    ///   - seed: the source of its random numbers, if it uses any.
    public func makePolicy(capacity: Int, seed: UInt64 = 0) -> any EvictionPolicy {
        make(max(0, capacity), seed)
    }

    public static func == (left: EvictionStrategy, right: EvictionStrategy) -> Bool {
        left.description == right.description
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(description)
    }
}
