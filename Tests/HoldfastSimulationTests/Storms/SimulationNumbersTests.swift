// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import HoldfastSimulation

@Suite("Simulation numbers")
struct SimulationNumbersTests {
    @Test("The logarithm agrees with the C library's to a few units in the last place")
    func logarithm() {
        var numbers = SimulationNumbers(seed: 3)
        for _ in 0..<2_000 {
            let value = numbers.uniform() * (numbers.uniform() < 0.5 ? 1 : 1e9) + 1e-300
            let expected = log(value)
            #expect(abs(SimulationNumbers.logarithm(value) - expected) <= 4 * max(expected.ulp.magnitude, 1e-16))
        }
        #expect(SimulationNumbers.logarithm(1) == 0)
    }

    @Test("Means and deviations are those of the distributions")
    func moments() {
        var numbers = SimulationNumbers(seed: 5)
        let count = 20_000
        let exponential = (0..<count).map { _ in numbers.exponential(mean: 2) }
        let normal = (0..<count).map { _ in numbers.normal(mean: 10, deviation: 2) }
        let uniform = (0..<count).map { _ in numbers.uniform() }
        func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(count) }
        func deviation(_ values: [Double]) -> Double {
            let center = mean(values)
            return mean(values.map { ($0 - center) * ($0 - center) }).squareRoot()
        }
        #expect(abs(mean(exponential) - 2) < 0.07 && abs(deviation(exponential) - 2) < 0.1)
        #expect(abs(mean(normal) - 10) < 0.07 && abs(deviation(normal) - 2) < 0.05)
        #expect(abs(mean(uniform) - 0.5) < 0.01 && uniform.allSatisfy { 0..<1 ~= $0 })
        #expect(exponential.allSatisfy { $0 >= 0 && $0.isFinite })
    }
}
