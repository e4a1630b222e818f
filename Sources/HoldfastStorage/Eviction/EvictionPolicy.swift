// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides which entries a bounded store holds: keys and sizes in, admissions and victims out.
///
/// A policy sees no payload, takes no lock and reads no clock. The same calls in the same order give the same answers, also
/// those of a policy that draws at random: it was made with a seed.
///
/// **Use.** ``EvictionStrategy`` makes one. The owner names entries by slots: small numbers of its own choice that it may use
/// again once the entry has left. Policies keep tables as long as the highest slot.
/// **Implement.** Keep these promises: ``used`` is at most ``capacity`` whenever a call returns; a slot that was inserted is
/// held until it is handed out as a victim or removed, and handed out at most once; a call takes constant time, or
/// time proportional to the victims (a logarithm more where the policy needs an order).
public protocol EvictionPolicy: Sendable {
    /// Names an entry of the owner's.
    typealias Slot = UInt32

    /// Bytes that the entries held may take together.
    var capacity: Int { get }
    /// Bytes of the entries held.
    var used: Int { get }
    /// The entries held.
    var count: Int { get }
    /// Bytes that the policy copied from one place of the store to another in order to keep entries; 0 where it lets them lie.
    var bytesMoved: Int { get }
    /// Bytes of memory that the policy's own tables take.
    var metadataBytes: Int { get }

    /// Whether the entry in `slot` is held.
    func holds(_ slot: Slot) -> Bool

    /// Notes that the entry in `slot` was used; nothing happens when it is not held.
    mutating func use(_ slot: Slot)

    /// Offers a new entry, which was asked for and was not there.
    ///
    /// - Parameters:
    ///   - slot: not held now.
    ///   - key: a hash of the entry's key, all of whose bits are mixed; the same one whenever the key comes back.
    ///   - size: bytes; a negative number counts as 0.
    ///   - victims: gets the slots that leave, `slot` itself among them when the entry is not admitted.
    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot])

    /// Takes an entry out that the owner gave up; nothing happens when it is not held.
    mutating func remove(_ slot: Slot)

    /// Changes the size of an entry that is held; `victims` gets the slots that leave, maybe `slot` itself.
    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot])

    /// Changes the capacity; `victims` gets the slots that leave until the rest fits.
    mutating func setCapacity(_ capacity: Int, victims: inout [Slot])
}

extension EvictionPolicy {
    /// Bytes moved: none.
    public var bytesMoved: Int { 0 }
}

/// Names an eviction policy and makes it.
///
/// Two strategies of one name are equal. The strategies of the tiers are here, those that were published elsewhere and the model of the
/// disk tier in HoldfastSimulation. The figures behind the choice are in docs/measuring-hit-rates.md.
public struct EvictionStrategy: Sendable, Hashable, CustomStringConvertible {
    /// The name: lower-case letters, digits and hyphens.
    public let description: String
    private let make: @Sendable (_ capacity: Int, _ seed: UInt64) -> any EvictionPolicy

    /// A strategy of your own, for ``MemoryStore`` and the simulator.
    ///
    /// - Parameters:
    ///   - name: what tells it from others.
    ///   - makePolicy: makes a policy that holds nothing, for so many bytes (never negative), which draws its random numbers from the
    ///     seed, if it does.
    public init(
        named name: String,
        makePolicy: @escaping @Sendable (_ capacity: Int, _ seed: UInt64) -> any EvictionPolicy
    ) {
        description = name
        make = makePolicy
    }

    /// The memory tier's: ``densityTinyLFU(beta:)`` with 0.5.
    public static let memory = EvictionStrategy(named: "memory") { capacity, seed in
        DensityTinyLFUPolicy(capacity: capacity, beta: 0.5, seed: seed)
    }

    /// Most often used for its bytes^beta, of late: 0 for byte hits, 1 for object hits; a beta outside counts as the nearer one.
    public static func densityTinyLFU(beta: Double) -> EvictionStrategy {
        let beta = beta > 0 ? min(1, beta) : 0
        return EvictionStrategy(named: "dtlfu-\(beta)") { capacity, seed in
            DensityTinyLFUPolicy(capacity: capacity, beta: beta, seed: seed)
        }
    }

    /// A policy that holds nothing yet.
    ///
    /// - Parameters:
    ///   - capacity: bytes; a negative number means 0.
    ///   - seed: what it draws its random numbers from, if it does.
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
