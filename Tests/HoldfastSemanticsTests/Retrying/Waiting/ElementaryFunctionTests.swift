// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct ElementaryFunctionTests {
    private func isNear(_ value: Double, _ expected: Double) -> Bool {
        (value - expected).magnitude <= expected.magnitude * 1e-12
    }

    @Test(
        "Powers of two",
        arguments: [
            (0.0, 1.0), (1, 2), (-1, 0.5), (0.5, 1.414213562373095), (-0.5, 0.7071067811865476),
            (0.1, 1.0717734625362931), (10.3, 1260.691879265195), (-20.7, 5.870554033970437e-07),
            (1023, 8.98846567431158e307), (1023.9, 1.6773070034857416e308), (-1022, .leastNormalMagnitude),
            (1024, .infinity), (5000, .infinity), (.infinity, .infinity), (-5000, 0), (-.infinity, 0),
        ]
    )
    func exp2(exponent: Double, expected: Double) {
        let value = ElementaryFunction.exp2(exponent)
        #expect(value == expected || isNear(value, expected), "\(value)")
    }

    @Test(
        "Hyperbolic tangents",
        arguments: [
            (0.0, 0.0), (1e-8, 1e-8), (0.001, 0.0009999996666668), (0.1, 0.09966799462495582),
            (0.2, 0.197375320224904), (0.5, 0.46211715726000974), (1, 0.7615941559557649), (2.5, 0.9866142981514303),
            (8, 0.9999997749296758), (19, 0.9999999999999999), (20, 1), (5000, 1), (.infinity, 1),
        ]
    )
    func tanh(value: Double, expected: Double) {
        #expect(isNear(ElementaryFunction.tanh(value), expected))
        #expect(isNear(ElementaryFunction.tanh(-value), -expected))
    }

    @Test(
        "Cube roots",
        arguments: [
            (0.0, 0.0), (1, 1), (8, 2), (0.001, 0.1), (2, 1.2599210498948732), (7.5, 1.9574338205844317),
            (27.5, 3.018405368398843), (123_456.789, 49.793385921817446), (1e300, 1e100), (1e-300, 1e-100),
        ]
    )
    func cubeRoot(value: Double, expected: Double) {
        #expect(isNear(ElementaryFunction.cubeRoot(value), expected))
        #expect(isNear(ElementaryFunction.cubeRoot(-value), -expected))
    }

    @Test("Invalid numbers stay invalid", arguments: [ElementaryFunction.exp2, ElementaryFunction.tanh])
    func notANumber(function: @Sendable (Double) -> Double) {
        #expect(function(.nan).isNaN && ElementaryFunction.cubeRoot(.nan).isNaN)
        #expect(ElementaryFunction.squareRoot(.nan).isNaN && ElementaryFunction.squareRoot(-1).isNaN)
        #expect(ElementaryFunction.cubeRoot(-.infinity) == -.infinity)
        #expect(ElementaryFunction.squareRoot(.infinity) == .infinity && ElementaryFunction.squareRoot(0) == 0)
    }

    @Test("Powers of a root give its argument back, at any magnitude", arguments: propertySeeds)
    func roots(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let value = ElementaryFunction.exp2(Double.random(in: -900...900, using: &source))
            let cube = ElementaryFunction.cubeRoot(value)
            let square = ElementaryFunction.squareRoot(value)
            #expect(isNear(cube * cube * cube, value) && isNear(square * square, value), "\(value)")
        }
    }

    @Test("2^(a+b) is 2^a 2^b, and 2^a grows with a", arguments: propertySeeds)
    func powers(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let first = Double.random(in: -400...400, using: &source)
            let second = Double.random(in: -400...400, using: &source)
            let product = ElementaryFunction.exp2(first) * ElementaryFunction.exp2(second)
            #expect(isNear(ElementaryFunction.exp2(first + second), product), "\(first) + \(second)")
            #expect(ElementaryFunction.exp2(first) < ElementaryFunction.exp2(first + 1e-9))
        }
    }
}
