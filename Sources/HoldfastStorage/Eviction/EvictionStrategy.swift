// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names an eviction policy and makes it.
///
/// The figures behind the choice are in docs/measuring-hit-rates.md.
public struct EvictionStrategy: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case lru
    }

    private let form: Form

    /// Least recently used.
    public static let lru = EvictionStrategy(form: .lru)

    /// Every strategy with a name of its own, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [.lru]

    /// The strategy with this name, as ``description`` spells it.
    public init?(named name: String) {
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
        }
    }
}
