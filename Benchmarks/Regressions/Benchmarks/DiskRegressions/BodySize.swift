// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Benchmark

/// A size of body; an iteration is a thousand operations, of the largest bodies one.
struct BodySize: Sendable {
    let name: String
    let bytes: Int

    static let all = [
        BodySize(name: "1KiB", bytes: 1 << 10),
        BodySize(name: "16KiB", bytes: 16 << 10),
        BodySize(name: "1MiB", bytes: 1 << 20),
    ]

    var configuration: Benchmark.Configuration {
        var configuration = Benchmark.defaultConfiguration
        configuration.scalingFactor = bytes < 1 << 20 ? .kilo : .one
        return configuration
    }
}
