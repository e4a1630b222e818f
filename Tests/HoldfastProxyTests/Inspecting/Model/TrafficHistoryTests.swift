// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastTesting
    import Testing

    @testable import HoldfastProxy

    @Suite("Traffic by second")
    struct TrafficHistoryTests {
        private static func figures(_ requests: Int) -> TrafficFigures {
            var figures = TrafficFigures()
            figures.requests = requests
            return figures
        }

        private static func history(_ looks: [(second: Int64, requests: Int)]) -> [Int] {
            var history = TrafficHistory(second: 0, figures: figures(0))
            for look in looks { history.look(second: look.second, figures: figures(look.requests)) }
            return history.seconds.map(\.requests)
        }

        @Test("What was counted since the previous sample belongs to the second of that sample")
        func attribution() {
            let seconds = Self.history([(0, 3), (1, 5), (1, 6), (4, 7)])
            #expect(seconds.suffix(5) == [5, 1 + 1, 0, 0, 0])
            #expect(seconds.dropLast(5).allSatisfy { $0 == 0 })
            #expect(seconds.count == TrafficHistory.length)
        }

        @Test("Seconds older than the history are forgotten", arguments: [299, 300, 301, 100_000, .max])
        func forgetting(second: Int64) {
            let seconds = Self.history([(0, 9), (second, 9)])
            #expect(seconds.reduce(0, +) == (second < 300 ? 9 : 0))
            #expect(seconds.first == (second == 299 ? 9 : 0))
        }

        @Test("A sample that a newer one overtook counts nothing twice")
        func overtaken() {
            let seconds = Self.history([(1, 10), (2, 25), (1, 20), (2, 30)])
            #expect(seconds.reduce(0, +) == 30)
        }

        @Test(
            "Property: nothing within the history is lost, whenever samples are taken",
            arguments: [1, 2, 3, 4] as [UInt64]
        )
        func sums(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            var history = TrafficHistory(second: -5, figures: Self.figures(0))
            var model: [Int64: Int] = [:]
            var (second, total, last) = (Int64(-5), 0, Int64(-5))
            for _ in 0..<2_000 {
                second += Int64.random(in: 0...3, using: &generator)
                let news = Int.random(in: 0...9, using: &generator)
                total += news
                model[last, default: 0] += news
                history.look(second: second, figures: Self.figures(total))
                last = second
            }
            let expected = (0..<Int64(TrafficHistory.length)).reversed().map { model[second - $0] ?? 0 }
            #expect(history.seconds.map(\.requests) == expected, "seed \(seed)")
        }
    }
#endif
