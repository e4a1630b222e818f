// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("SplitMix64", .timeLimit(.minutes(20)))
struct SplitMix64Tests {
    @Test("SplitMix64 gives the numbers of its authors' reference for seed 1234567")
    func reference() {
        var generator = SplitMix64(seed: 1_234_567)
        #expect(generator.next() == 6_457_827_717_110_365_317)
        #expect(generator.next() == 3_203_168_211_198_807_973)
        #expect(generator.next() == 9_817_491_932_198_370_423)
        #expect(SplitMix64.mixed(1_234_567) == 6_457_827_717_110_365_317)
    }

    @Test("A share is the number's place between 0 and 1")
    func share() {
        #expect(SplitMix64.share(0) == 0)
        #expect(SplitMix64.share(1 << 63) == 0.5)
        #expect(SplitMix64.share(.max) < 1)
        var generator = SplitMix64(seed: 5)
        #expect(generator.nextShare() == SplitMix64.share(SplitMix64.mixed(5)))
    }

    @Test("A hash depends on every part and on their order")
    func hash() {
        #expect(SplitMix64.hash(1, 2) == SplitMix64.hash(1, 2))
        #expect(SplitMix64.hash(1, 2) != SplitMix64.hash(2, 1))
        #expect(SplitMix64.hash(1, 2) != SplitMix64.hash(1, 3))
        #expect(SplitMix64.hash(1, 2) != SplitMix64.hash(1, 2, 0))
    }
}
