// swift-tools-version: 6.1
// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import PackageDescription

let package = Package(
    name: "holdfast-regressions",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "holdfast", path: "../.."),
        // Without its traits the package counts no allocations, but it also needs no interposer, which not all systems have.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
    ],
    targets: [
        .executableTarget(
            name: "DiskRegressions",
            dependencies: [
                .product(name: "Benchmark", package: "benchmark"),
                .product(name: "HoldfastStorage", package: "holdfast"),
            ],
            path: "Benchmarks/DiskRegressions",
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ],
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        )
    ],
    swiftLanguageModes: [.v6]
)
