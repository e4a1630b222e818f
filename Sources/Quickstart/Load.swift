// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

/// The languages of the calls; the raw value is the language tag.
enum Language: String, CaseIterable, Sendable {
    case english = "en"
    case german = "de"
    case french = "fr"
}

/// One call of a load.
struct Call: Sendable, Hashable {
    /// The resource's rank; 0 is asked for most often.
    let resource: Int
    /// The value of Accept-Language.
    let language: Language
    /// Whether this is the first call of the load for its resource.
    let isFirstOfResource: Bool
}

/// The calls that every run makes, in the order they begin; the same for the same seed.
struct Load: Sendable {
    /// The calls.
    let calls: [Call]

    /// Creates a Zipf-distributed load.
    ///
    /// - Parameters:
    ///   - count: how many calls.
    ///   - resources: how many resources there are, at least one.
    ///   - seed: the seed of the draws.
    ///   - beginsWithEach: whether the load begins with one call for each resource, in order.
    init(count: Int, resources: Int, seed: UInt64, beginsWithEach: Bool = false) {
        let distribution = Zipf(count: resources)
        var generator = SplitMix64(seed: seed)
        var known = Set<Int>()
        calls = (0..<max(0, count)).map { number in
            let drawn = distribution.rank(using: &generator)
            let resource = beginsWithEach && number < resources ? number : drawn
            return Call(
                resource: resource,
                language: Language.allCases.randomElement(using: &generator) ?? .english,
                isFirstOfResource: known.insert(resource).inserted
            )
        }
    }
}

/// A Zipf distribution over ranks from 0: the probability of rank r is proportional to 1 / (r + 1)^exponent.
struct Zipf: Sendable {
    /// The exponent of the program's load: at the steeper end of what web caches see (0.64 to 0.9).
    static let usualExponent = 0.9

    private let cumulative: [Double]

    /// Creates a distribution over `count` ranks, at least one.
    init(count: Int, exponent: Double = usualExponent) {
        var sum = 0.0
        cumulative = (1...max(1, count)).map { rank in
            sum += pow(Double(rank), -exponent)
            return sum
        }
    }

    /// The probability of a rank; 0 for one that does not exist.
    func share(of rank: Int) -> Double {
        guard cumulative.indices.contains(rank), let total = cumulative.last else { return 0 }
        return (cumulative[rank] - (rank > 0 ? cumulative[rank - 1] : 0)) / total
    }

    /// Draws a rank; costs O(log count).
    func rank(using generator: inout SplitMix64) -> Int {
        let point = generator.nextShare() * (cumulative.last ?? 0)
        var low = 0
        var high = cumulative.count - 1
        while low < high {
            let middle = low + (high - low) / 2
            if cumulative[middle] > point {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }
}
