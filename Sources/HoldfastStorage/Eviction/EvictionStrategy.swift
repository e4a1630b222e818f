// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names an eviction policy and makes it.
///
/// The figures behind the choice are in docs/measuring-hit-rates.md.
public struct EvictionStrategy: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case lru
        case memory
        case disk
        case fifoSegments
        case densityTinyLFU(beta: Double)
    }

    private let form: Form

    /// Least recently used.
    public static let lru = EvictionStrategy(form: .lru)

    /// The memory tier's: ``densityTinyLFU(beta:)`` with 0.5.
    public static let memory = EvictionStrategy(form: .memory)

    /// The disk tier's: the rules by which a ``DiskStore`` admits and reclaims, over segments, dead bytes counted.
    public static let disk = EvictionStrategy(form: .disk)

    /// Plain S3-FIFO over the same segments, for comparison.
    public static let fifoSegments = EvictionStrategy(form: .fifoSegments)

    /// Most often used for its bytes^beta, of late: 0 for byte hits, 1 for object hits; a beta outside counts as the nearer one.
    public static func densityTinyLFU(beta: Double) -> EvictionStrategy {
        EvictionStrategy(form: .densityTinyLFU(beta: beta > 0 ? min(1, beta) : 0))
    }

    /// Every strategy with a name of its own, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [.memory, .disk, .lru, .fifoSegments]

    /// The strategy with this name, as ``description`` spells it.
    public init?(named name: String) {
        if name.hasPrefix("dtlfu-"), let beta = Double(name.dropFirst(6)), (0...1).contains(beta) {
            self = .densityTinyLFU(beta: beta)
            return
        }
        guard let found = Self.all.first(where: { $0.description == name }) else { return nil }
        self = found
    }

    private init(form: Form) {
        self.form = form
    }

    /// The name: lower-case letters, digits and hyphens.
    public var description: String {
        switch form {
        case .lru: "lru"
        case .memory: "memory"
        case .disk: "disk"
        case .fifoSegments: "s3fifo-segments"
        case .densityTinyLFU(let beta): "dtlfu-\(beta)"
        }
    }

    /// A policy that holds nothing yet.
    ///
    /// - Parameters:
    ///   - capacity: bytes; a negative number means 0.
    ///   - seed: what it draws its random numbers from, if it does.
    public func makePolicy(capacity: Int, seed: UInt64 = 0) -> any EvictionPolicy {
        switch form {
        case .lru: LRUPolicy(capacity: capacity)
        case .disk: SegmentedPolicy(capacity: capacity, rules: .worth, seed: seed)
        case .fifoSegments: SegmentedPolicy(capacity: capacity, rules: .fifo, seed: seed)
        case .memory: DensityTinyLFUPolicy(capacity: capacity, beta: 0.5, seed: seed)
        case .densityTinyLFU(let beta): DensityTinyLFUPolicy(capacity: capacity, beta: beta, seed: seed)
        }
    }
}
