// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The languages callers ask for; the raw value is the language tag.
enum Language: String, CaseIterable, Sendable {
    case english = "en"
    case german = "de"
    case french = "fr"
}

/// One call of a load.
struct Call: Sendable, Hashable {
    /// The resource's rank; 0 is asked for most often.
    let resource: Int
    /// What goes into Accept-Language.
    let language: Language
    /// Whether no earlier call of the load asks for the resource.
    let isFirstOfResource: Bool
}

/// The calls that every run makes, in the order in which they begin: the same for the same seed.
struct Load: Sendable {
    /// The calls.
    let calls: [Call]

    /// A Zipf-distributed load.
    ///
    /// - Parameters:
    ///   - count: how many calls.
    ///   - resources: how many resources there are to ask for, at least one.
    ///   - seed: what the draws derive from.
    ///   - beginsWithEach: whether the load asks for each resource once, in order, before it draws any.
    init(count: Int, resources: Int, seed: UInt64, beginsWithEach: Bool = false) {
        let distribution = Zipf(count: resources)
        var generator = SplitMix(seed: seed)
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
