// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// What an origin says about keeping a resource.
enum ResourceKind: CaseIterable, Sendable {
    /// Fresh for a while: `max-age`.
    case keepable
    /// To be confirmed before each use: `no-cache` or `max-age=0`, with an ETag.
    case revalidated
    /// Fresh for a while, one variant a language.
    case varying
    /// Not to be stored.
    case unstorable

    /// The share of the calls that go to resources of this kind.
    var share: Double {
        switch self {
        case .keepable: 0.55
        case .revalidated: 0.25
        case .varying, .unstorable: 0.1
        }
    }
}

/// One resource of the built-in origin.
struct Resource: Sendable, Hashable {
    /// The bounds of a body's length in bytes.
    static let sizes: ClosedRange<Int> = 300...204_800

    /// Its number; its rank in the load as well.
    let number: Int
    /// How it may be kept.
    let kind: ResourceKind
    /// The length of its body in bytes.
    let size: Int
    /// How long it stays fresh, in seconds; only the kinds that may be kept say so.
    let maxAge: Int

    /// The resources of a seed.
    ///
    /// Kinds are dealt out from the most popular resource down, each to the kind that is furthest behind its share, so that
    /// the shares hold for the calls and not only for the resources, whatever the seed. Sizes are bounded Pareto: many
    /// small bodies, a few large ones.
    static func catalogue(count: Int, seed: UInt64) -> [Resource] {
        let popularity = Zipf(count: count)
        var dealt: [ResourceKind: Double] = [:]
        var soFar = 0.0
        return (0..<max(1, count)).map { number in
            var generator = SplitMix(seed: SplitMix.hash(seed, UInt64(number)))
            let share = popularity.share(of: number)
            soFar += share
            var kind = ResourceKind.keepable
            var furthest = -Double.infinity
            for candidate in ResourceKind.allCases {
                let behind = candidate.share * soFar - dealt[candidate, default: 0]
                if behind > furthest { (kind, furthest) = (candidate, behind) }
            }
            dealt[kind, default: 0] += share
            return Resource(
                number: number,
                kind: kind,
                size: size(generator.nextShare()),
                maxAge: Int.random(in: 60...3_600, using: &generator)
            )
        }
    }

    private static func size(_ sample: Double) -> Int {
        let shape = 0.6
        let least = Double(sizes.lowerBound)
        let rest = 1 - sample * (1 - pow(least / Double(sizes.upperBound), shape))
        return min(max(Int(least * pow(rest, -1 / shape)), sizes.lowerBound), sizes.upperBound)
    }
}
