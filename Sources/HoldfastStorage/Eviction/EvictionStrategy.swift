// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
