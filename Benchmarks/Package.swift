// swift-tools-version: 6.1
// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import PackageDescription

// LMDB is a peer, not a need: without its header the subject is left out, and the run says so.
let lmdbHeaders = ["/usr/include/lmdb.h", "/usr/local/include/lmdb.h", "/opt/homebrew/include/lmdb.h"]
let hasLMDB = lmdbHeaders.contains { FileManager.default.fileExists(atPath: $0) }

let package = Package(
    name: "holdfast-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "disk", targets: ["DiskBenchmark"]),
        .executable(name: "hit", targets: ["HitBenchmark"]),
        .executable(name: "hitrate", targets: ["HitRateBenchmark"]),
        .executable(name: "overhead", targets: ["OverheadBenchmark"]),
        .executable(name: "scale", targets: ["ScaleBenchmark"]),
        .executable(name: "storm", targets: ["StormBenchmark"]),
    ],
    dependencies: [
        .package(name: "holdfast", path: ".."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .target(name: "CAllocator"),
        .target(name: "CAllocationCount"),
        .target(name: "CInstructionCount"),
        .target(name: "Harness", dependencies: ["CAllocator", "CInstructionCount"]),
        .target(
            name: "Exchanges",
            dependencies: [
                .product(name: "Holdfast", package: "holdfast"),
                .product(name: "HoldfastSemantics", package: "holdfast"),
                .product(name: "HoldfastStorage", package: "holdfast"),
            ]
        ),
        .target(name: "Contests", dependencies: ["CAllocationCount", "Harness"]),
        .executableTarget(
            name: "DiskBenchmark",
            dependencies: [
                "Harness",
                .product(name: "HoldfastStorage", package: "holdfast"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ] + (hasLMDB ? ["CLMDB"] : [])
        ),
        .executableTarget(
            name: "HitBenchmark",
            dependencies: [
                "Contests", "Exchanges", "Harness",
                .product(name: "Holdfast", package: "holdfast"),
                .product(name: "HoldfastSemantics", package: "holdfast"),
                .product(name: "HoldfastStorage", package: "holdfast"),
            ]
        ),
        .executableTarget(
            name: "HitRateBenchmark",
            dependencies: [
                "Harness",
                .product(name: "HoldfastSimulation", package: "holdfast"),
                .product(name: "HoldfastStorage", package: "holdfast"),
            ]
        ),
        .executableTarget(
            name: "OverheadBenchmark",
            dependencies: [
                "Contests", "Exchanges", "Harness",
                .product(name: "Holdfast", package: "holdfast"),
                .product(name: "HoldfastSemantics", package: "holdfast"),
            ]
        ),
        .executableTarget(
            name: "ScaleBenchmark",
            dependencies: [
                "Exchanges", "Harness",
                .product(name: "Holdfast", package: "holdfast"),
                .product(name: "HoldfastStorage", package: "holdfast"),
            ]
        ),
        .executableTarget(
            name: "StormBenchmark",
            dependencies: [
                "Harness",
                .product(name: "HoldfastSemantics", package: "holdfast"),
                .product(name: "HoldfastSimulation", package: "holdfast"),
            ]
        ),
        .testTarget(name: "HarnessTests", dependencies: ["Harness"]),
        .testTarget(
            name: "HitRateBenchmarkTests",
            dependencies: ["HitRateBenchmark", "Harness", .product(name: "HoldfastSimulation", package: "holdfast")]
        ),
        .testTarget(
            name: "ScaleBenchmarkTests",
            dependencies: ["ScaleBenchmark", "Harness", .product(name: "HoldfastStorage", package: "holdfast")]
        ),
        .testTarget(
            name: "StormBenchmarkTests",
            dependencies: [
                "StormBenchmark", "Harness",
                .product(name: "HoldfastSemantics", package: "holdfast"),
                .product(name: "HoldfastSimulation", package: "holdfast"),
            ]
        ),
    ] + (hasLMDB ? [.systemLibrary(name: "CLMDB", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])])] : []),
    swiftLanguageModes: [.v6]
)

// One settings loop for all targets, as in the package above.
for target in package.targets where target.type != .system {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
    if hasLMDB, target.name == "DiskBenchmark" { target.swiftSettings?.append(.define("LMDB")) }
}
