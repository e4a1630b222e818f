// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Benchmark
internal import Foundation
internal import HoldfastStorage

/// Instructions of the operations that the executable `disk` times: they repeat to about a hundredth where wall time moves
/// by a third, so a regression shows here first.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.instructions, .wallClock],
        warmupIterations: 3,
        scalingFactor: .kilo,
        maxDuration: .seconds(5),
        maxIterations: 50,
        thresholds: [.instructions: .init(relative: [.p90: 3.0])]
    )
    for size in BodySize.all {
        Benchmark("put-\(size.name)", configuration: size.configuration) { benchmark in
            try await StoreBench.withStore(size: size) { bench in
                benchmark.startMeasurement()
                try await bench.put(benchmark.scaledIterations)
                benchmark.stopMeasurement()
            }
        }
        Benchmark("get-\(size.name)", configuration: size.configuration) { benchmark in
            try await StoreBench.withStore(size: size) { bench in
                try await bench.put(0..<StoreBench.keyCount)
                benchmark.startMeasurement()
                try await bench.get(benchmark.scaledIterations)
                benchmark.stopMeasurement()
            }
        }
        Benchmark("mixed-\(size.name)", configuration: size.configuration) { benchmark in
            try await StoreBench.withStore(size: size) { bench in
                try await bench.put(0..<StoreBench.keyCount)
                benchmark.startMeasurement()
                for number in benchmark.scaledIterations {
                    if number % 10 == 9 {
                        try await bench.put(number..<(number + 1))
                    } else {
                        try await bench.get(number..<(number + 1))
                    }
                }
                benchmark.stopMeasurement()
            }
        }
    }
}
