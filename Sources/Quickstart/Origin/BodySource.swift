// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// The bodies of the built-in origin: the same bytes for the same resource, language and seed.
///
/// All of them are cut from one run of noise, each from a place of its own, so an answer costs no copy.
struct BodySource: Sendable {
    private static let places = 1 << 18
    private let noise: ByteChunk
    private let seed: UInt64

    /// The bodies of a seed; takes about half a MiB.
    init(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(BodySource.places + Resource.sizes.upperBound + 8)
        while bytes.count < BodySource.places + Resource.sizes.upperBound {
            let number = generator.next()
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(shift)))) }
        }
        noise = ByteChunk(bytes)
        self.seed = seed
    }

    /// The body of a resource; only one that varies has another body in another language.
    func body(of resource: Resource, in language: Language) -> ByteChunk {
        let variant = Language.allCases.firstIndex(of: language) ?? 0
        let place = SplitMix.hash(seed, UInt64(truncatingIfNeeded: resource.number), UInt64(variant))
        let start = Int(place % UInt64(BodySource.places))
        return noise[start..<(start + resource.size)]
    }
}
