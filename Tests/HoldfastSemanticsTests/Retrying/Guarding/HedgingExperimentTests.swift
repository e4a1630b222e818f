// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("E8: hedging", .timeLimit(.minutes(20)))
struct HedgingExperimentTests {
    /// 20 to 60 ms, most of them near 40.
    static func ordinary(_ generator: inout SeededGenerator) -> Duration {
        .microseconds(
            20_000 + Int.random(in: 0...20_000, using: &generator) + Int.random(in: 0...20_000, using: &generator)
        )
    }

    static let slowest = Duration.milliseconds(60)

    /// One seed, and more where HOLDFAST_FUZZ_FACTOR asks for them.
    static let seeds = 1...UInt64(FuzzRounds.of(1))

    @Test(
        "E8: if 1 % take 20 times the slowest ordinary response, p99.9 falls tenfold for 5 % more requests",
        arguments: seeds
    )
    func stragglers(seed: UInt64) {
        func run(_ rules: HedgeRules?) -> HedgingExperiment.Result {
            HedgingExperiment.run(count: 8000, gap: .milliseconds(20), rules: rules, seed: seed) { _, generator in
                let isStraggler = Int.random(in: 0..<100, using: &generator) == 0
                return isStraggler ? Self.slowest * 20 : Self.ordinary(&generator)
            }
        }
        let (bare, hedged) = (run(nil), run(HedgeRules()))
        let cut = bare.percentile(0.999) / hedged.percentile(0.999)
        #expect(cut >= 10, "seed \(seed): cut \(cut)")
        #expect(hedged.extraLoad <= 0.05, "seed \(seed): extra load \(hedged.extraLoad)")
    }

    @Test(
        "E8: if 1 % take 20 times as long as usual, one hedge can gain at most a factor of 10; p99.9 comes near it",
        arguments: seeds
    )
    func multipliedStragglers(seed: UInt64) {
        func run(_ rules: HedgeRules?) -> HedgingExperiment.Result {
            HedgingExperiment.run(count: 8000, gap: .milliseconds(20), rules: rules, seed: seed) { _, generator in
                let length = Self.ordinary(&generator)
                return Int.random(in: 0..<100, using: &generator) == 0 ? length * 20 : length
            }
        }
        // A hedge goes out after p95 and takes p90 where it counts: 20 p90 / (p95 + p90) is less than 10 for any spread.
        let (bare, hedged) = (run(nil), run(HedgeRules()))
        let cut = bare.percentile(0.999) / hedged.percentile(0.999)
        #expect(cut >= 9, "seed \(seed): cut \(cut)")
        #expect(hedged.extraLoad <= 0.05, "seed \(seed): extra load \(hedged.extraLoad)")
    }

    @Test("E8: at most 1 % extra load while everything is 20 times slower for two minutes", arguments: seeds)
    func everythingSlow(seed: UInt64) {
        let result = HedgingExperiment.run(
            count: 7500,
            gap: .milliseconds(20),
            rules: HedgeRules(),
            measuredFrom: 1500,
            seed: seed
        ) { now, generator in
            Self.ordinary(&generator) * (now < .seconds(30) ? 1 : 20)
        }
        #expect(result.extraLoad <= 0.01, "seed \(seed): extra load \(result.extraLoad)")
    }

    @Test("E8: hedging resumes when the slowness is over", arguments: seeds)
    func recovery(seed: UInt64) {
        let result = HedgingExperiment.run(
            count: 6000,
            gap: .milliseconds(20),
            rules: HedgeRules(),
            measuredFrom: 4500,
            seed: seed
        ) { now, generator in
            let factor = (.seconds(20)..<(.seconds(40))).contains(now) ? 20 : 1
            let isStraggler = Int.random(in: 0..<100, using: &generator) == 0
            return Self.ordinary(&generator) * factor * (isStraggler ? 40 : 1)
        }
        #expect(result.hedges > 0, "seed \(seed)")
        #expect(result.extraLoad <= 0.05, "seed \(seed)")
    }

    @Test("Vector tail-at-scale: a hedge after the 95th percentile costs about 5 %, and never more")
    func tailAtScale() {
        let result = HedgingExperiment.run(count: 8000, gap: .milliseconds(20), rules: HedgeRules(), seed: 4) {
            _,
            generator in Self.ordinary(&generator)
        }
        #expect((0.03...0.0505).contains(result.extraLoad), "extra load \(result.extraLoad)")
    }
}
