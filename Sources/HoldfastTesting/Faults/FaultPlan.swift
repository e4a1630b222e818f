// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which exchanges a fault befalls: by their number, or by chance from a seed.
public struct FaultPlan: Sendable {
    private enum Form: Sendable {
        case list([Fault?], repeats: Bool)
        case chance(seed: UInt64, [(share: Double, fault: Fault)])
    }

    private let form: Form

    /// One entry for each exchange in order; nil leaves it alone, and so does the end of the list.
    ///
    /// - Parameters:
    ///   - faults: what befalls each exchange.
    ///   - repeats: whether the list begins again at its end; false by default.
    public static func list(_ faults: [Fault?], repeats: Bool = false) -> FaultPlan {
        FaultPlan(form: .list(faults, repeats: repeats))
    }

    /// Each exchange meets one of these faults with its share, from 0 to 1, or none; shares beyond 1 in all are cut.
    ///
    /// What befalls the exchange of a number follows from the seed and that number alone, on every platform.
    public static func chance(seed: UInt64, _ faults: [(share: Double, fault: Fault)]) -> FaultPlan {
        FaultPlan(form: .chance(seed: seed, faults))
    }

    /// What befalls an exchange.
    ///
    /// - Parameter number: its number among those that the plan is for; the first is 1.
    public func fault(for number: Int) -> Fault? {
        switch form {
        case .list(let faults, let repeats):
            guard number >= 1, !faults.isEmpty else { return nil }
            let index = repeats ? (number - 1) % faults.count : number - 1
            return index < faults.count ? faults[index] : nil
        case .chance(let seed, let faults):
            var generator = SeededGenerator(seed: seed &+ UInt64(truncatingIfNeeded: number) &* 0xD134_2543_DE82_EF95)
            var rest = Double.random(in: 0..<1, using: &generator)
            for (share, fault) in faults where share > 0 {
                if rest < share { return fault }
                rest -= share
            }
            return nil
        }
    }
}
