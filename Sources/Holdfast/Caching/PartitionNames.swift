// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The digests of principals by a keyed hash of their credentials, so that each is computed once and no credential is kept.
///
/// Each stripe of threads has its own, and looks elsewhere for what it does not have, so that threads contend less.
final class PartitionNames: Sendable {
    private struct Place: Sendable {
        let credentials: KeyedHash.Wide
        let rule: Int
        let name: String
    }

    private final class Stripe: Sendable {
        /// Empty until the first credential comes.
        let places = Mutex<[Place?]>([])
    }

    private static let placesPerStripe = 512

    private let hash: KeyedHash
    private let stripes: [Stripe]

    /// - Parameter count: how many stripes there are.
    init(stripes count: Int = 2) {
        var random = SystemRandomNumberGenerator()
        hash = KeyedHash(keys: (random.next(), random.next()))
        stripes = (0..<max(1, count)).map { _ in Stripe() }
    }

    /// The digest of a principal, which `make` computes if it is not known; "" without credentials.
    ///
    /// - Parameters:
    ///   - explicit: a name that the call gives the principal in place of its credentials.
    ///   - rule: the number of the rule by which cookies are ignored.
    ///   - stripe: the caller's, one of those of ``CacheMeter``.
    func name(of fields: PlainRequestFields, explicit: String?, rule: Int, stripe: Int, make: () -> String) -> String {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        if let known = name(of: credentials, rule: rule, stripe: stripe) { return known }
        let place = Place(credentials: credentials, rule: rule, name: make())
        stripes[stripe % stripes.count].places.withLock { places in
            if places.isEmpty { places = [Place?](repeating: nil, count: Self.placesPerStripe) }
            places[Self.index(credentials)] = place
        }
        return place.name
    }

    /// The digest of a principal if it is known; "" without credentials.
    func name(of fields: PlainRequestFields, explicit: String?, rule: Int, stripe: Int) -> String? {
        guard let credentials = hashed(fields, explicit: explicit) else { return "" }
        return name(of: credentials, rule: rule, stripe: stripe)
    }

    private func name(of credentials: KeyedHash.Wide, rule: Int, stripe: Int) -> String? {
        for number in stripe..<stripe + stripes.count {
            let name: String? = stripes[number % stripes.count].places.withLock { places in
                guard !places.isEmpty, let place = places[Self.index(credentials)],
                    place.credentials == credentials, place.rule == rule
                else { return nil }
                return place.name
            }
            if let name { return name }
        }
        return nil
    }

    /// Nil without credentials.
    private func hashed(_ fields: PlainRequestFields, explicit: String?) -> KeyedHash.Wide? {
        if let explicit { return hash.wide(of: nil, nil, explicit) }
        if fields.authorization == nil, fields.cookie == nil { return nil }
        return hash.wide(of: fields.authorization, fields.cookie, nil)
    }

    private static func index(_ credentials: KeyedHash.Wide) -> Int {
        Int(credentials.low % UInt64(placesPerStripe))
    }
}
