// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import HoldfastSimulation
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("SampledRequests")
    struct SampledRequestsTests {
        /// A hash of an object's number.
        static func key(_ number: Int) -> UInt64 { RequestTrace.hash(of: "object \(number)".utf8) }

        @Test(
            "A sample has all or none of the requests for an object, and never exceeds its bound",
            arguments: [1, 2] as [UInt64]
        )
        func samples(_ seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            var requests = SampledRequests(limit: 4_000, sizesAreOfObjects: false, hasLives: true)
            var asked = [Int](repeating: 0, count: 4_000)
            for _ in 0..<20_000 {
                let number =
                    Int.random(in: 0..<4_000, using: &generator) * Int.random(in: 0..<4_000, using: &generator)
                    / 4_000
                asked[number] += 1
                requests.append(key: Self.key(number), size: UInt32(number + 1))
                #expect(requests.count <= 4_000)
            }
            let (rate, seen) = (requests.rate, requests.seen)
            let trace = requests.trace().trace
            #expect(rate < 1 && seen == 20_000, "seed \(seed)")
            var found = [Int](repeating: 0, count: 4_000)
            for request in trace.requests { found[Int(request.size) - 1] += 1 }
            for number in 0..<4_000 where found[number] > 0 { #expect(found[number] == asked[number], "seed \(seed)") }
            #expect(trace.keyCount > 60)
        }

        @Test("With too few objects to choose from, late ones are left out")
        func few() {
            var requests = SampledRequests(limit: 100, sizesAreOfObjects: false, hasLives: false)
            for number in 0..<500 { requests.append(key: Self.key(number % 10), size: 1) }
            #expect(requests.rate == 1 && requests.count == 100 && requests.cut == 400)
        }

        @Test("An object has the largest of its sizes, and one without any is left out")
        func sizes() {
            var requests = SampledRequests(limit: 100, sizesAreOfObjects: true, hasLives: false)
            for (number, size) in [(1, nil), (1, 10), (1, 30), (1, 20), (2, nil)] as [(Int, UInt32?)] {
                requests.append(key: Self.key(number), size: size)
            }
            let (trace, unsized) = requests.trace()
            #expect(trace.requests.map(\.size) == [30, 30, 30, 30])
            #expect(unsized == 1 && trace.changes == 0)
        }
    }
#endif
