// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names an eviction policy and makes it.
///
/// The figures behind the choice are in docs/measuring-hit-rates.md.
public struct EvictionStrategy: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case lru
        case wtinylfu
        case sieve
        case s3fifo
        case gdsf
        case fifo
        case memory
        case disk
        case densityTinyLFU(beta: Double)
    }

    private let form: Form

    /// Least recently used.
    public static let lru = EvictionStrategy(form: .lru)

    /// W-TinyLFU (2017), whose window follows the hit ratio: what is asked for more often than others stays.
    public static let wtinylfu = EvictionStrategy(form: .wtinylfu)

    /// SIEVE (NSDI 2024): the oldest entry that was not used lately leaves.
    public static let sieve = EvictionStrategy(form: .sieve)

    /// S3-FIFO (SOSP 2023): three queues, of which one remembers what left.
    public static let s3fifo = EvictionStrategy(form: .s3fifo)

    /// Greedy-Dual-Size-Frequency (1998): the fewest uses for each byte leave.
    public static let gdsf = EvictionStrategy(form: .gdsf)

    /// First in, first out.
    public static let fifo = EvictionStrategy(form: .fifo)

    /// The memory tier's: ``densityTinyLFU(beta:)`` with 0.5.
    public static let memory = EvictionStrategy(form: .memory)

    /// The disk tier's: the rules by which a ``DiskStore`` admits and reclaims, over segments, dead bytes counted.
    public static let disk = EvictionStrategy(form: .disk)

    /// Most often used for its bytes^beta, of late: 0 for byte hits, 1 for object hits; a beta outside counts as the nearer one.
    public static func densityTinyLFU(beta: Double) -> EvictionStrategy {
        EvictionStrategy(form: .densityTinyLFU(beta: beta > 0 ? min(1, beta) : 0))
    }

    /// Every strategy with a name of its own, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [
        .memory, .disk, .lru, .wtinylfu, .sieve, .s3fifo, .gdsf, .fifo,
    ]

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
        case .wtinylfu: "wtinylfu"
        case .sieve: "sieve"
        case .s3fifo: "s3fifo"
        case .gdsf: "gdsf"
        case .fifo: "fifo"
        case .memory: "memory"
        case .disk: "disk"
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
        case .wtinylfu: WTinyLFUPolicy(capacity: capacity)
        case .sieve: SievePolicy(capacity: capacity)
        case .s3fifo: S3FIFOPolicy(capacity: capacity)
        case .gdsf: GDSFPolicy(capacity: capacity)
        case .fifo: FIFOPolicy(capacity: capacity)
        case .disk: SegmentedPolicy(capacity: capacity, seed: seed)
        case .memory: DensityTinyLFUPolicy(capacity: capacity, beta: 0.5, seed: seed)
        case .densityTinyLFU(let beta): DensityTinyLFUPolicy(capacity: capacity, beta: beta, seed: seed)
        }
    }
}
