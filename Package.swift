// swift-tools-version: 6.1
// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import PackageDescription

let package = Package(
    name: "holdfast",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Holdfast", targets: ["Holdfast"]),
        .library(name: "HoldfastSemantics", targets: ["HoldfastSemantics"]),
        .library(name: "HoldfastStorage", targets: ["HoldfastStorage"]),
        .library(name: "HoldfastServices", targets: ["HoldfastServices"]),
        .library(name: "HoldfastCrypto", targets: ["HoldfastCrypto"]),
        .library(name: "HoldfastXML", targets: ["HoldfastXML"]),
        .library(name: "HoldfastTesting", targets: ["HoldfastTesting"]),
        .executable(name: "quickstart", targets: ["Quickstart"]),
    ],
    traits: [
        // Nothing is on by default, so a plain build fetches no package.
        .default(enabledTraits: []),
        .trait(
            name: "AsyncHTTPClient",
            description: "Reserved for the async-http-client transport; enables nothing yet."
        ),
        .trait(name: "HTTPTypes", description: "Reserved for the swift-http-types bridge; enables nothing yet."),
        .trait(name: "Observability", description: "Reserved for logs, metrics and traces; enables nothing yet."),
        .trait(name: "Redis", description: "Reserved for the Redis store; enables nothing yet."),
        .trait(
            name: "XML",
            description: "XML endpoints, by XMLCoder: InputFormat.XML and OutputFormat.XML of HoldfastXML."
        ),
        .trait(
            name: "Crypto",
            description: "Encryption at rest where there is no CryptoKit, by swift-crypto: AEADSeal of HoldfastCrypto."
        ),
        .trait(name: "Proxy", description: "Reserved for the caching proxy; enables nothing yet."),
        .trait(name: "Tool", description: "Reserved for the holdfast command-line tool; enables nothing yet."),
    ],
    dependencies: [
        // Each stands behind a trait and is fetched where that is enabled, and nowhere else.
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/CoreOffice/XMLCoder", from: "0.18.2"),
    ],
    targets: [
        .target(name: "HoldfastSemantics"),
        .target(name: "HoldfastStorage"),
        .target(name: "Holdfast", dependencies: ["HoldfastSemantics", "HoldfastStorage"]),
        .target(name: "HoldfastServices", dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage"]),
        .target(name: "HoldfastTesting", dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage"]),
        .target(
            name: "HoldfastCrypto",
            dependencies: [
                "HoldfastStorage",
                .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Crypto"])),
            ]
        ),
        .target(
            name: "HoldfastXML",
            dependencies: [
                "HoldfastServices",
                .product(name: "XMLCoder", package: "XMLCoder", condition: .when(traits: ["XML"])),
            ]
        ),
        .executableTarget(
            name: "Quickstart",
            dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastServices", "HoldfastStorage"]
        ),

        .target(name: "LoopbackServer", path: "Tests/LoopbackServer"),
        .testTarget(
            name: "HoldfastSemanticsTests",
            dependencies: ["HoldfastSemantics", "HoldfastTesting"],
            resources: [.copy("Fixtures")]
        ),
        .testTarget(name: "HoldfastStorageTests", dependencies: ["HoldfastStorage", "HoldfastTesting"]),
        .testTarget(
            name: "HoldfastTests",
            dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting", "LoopbackServer"]
        ),
        .testTarget(
            name: "HoldfastServicesTests",
            dependencies: [
                "HoldfastServices", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "LoopbackServer",
            ]
        ),
        .testTarget(
            name: "HoldfastCryptoTests",
            dependencies: ["HoldfastCrypto", "HoldfastStorage", "HoldfastTesting"]
        ),
        .testTarget(
            name: "HoldfastXMLTests",
            dependencies: ["HoldfastXML", "HoldfastServices", "Holdfast", "HoldfastSemantics", "HoldfastTesting"]
        ),
        .testTarget(
            name: "HoldfastTestingTests",
            dependencies: ["HoldfastTesting", "Holdfast", "HoldfastSemantics", "HoldfastStorage"]
        ),
        .testTarget(
            name: "QuickstartTests",
            dependencies: ["Quickstart", "LoopbackServer"]
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting"],
            resources: [.copy("Fixtures")]
        ),
        .executableTarget(
            name: "CrashChild",
            dependencies: ["HoldfastStorage", "HoldfastTesting"],
            path: "Tests/CrashChild"
        ),
        .testTarget(name: "CrashTests", dependencies: ["CrashChild", "HoldfastStorage", "HoldfastTesting"]),
        .testTarget(name: "ArchitectureTests"),
    ],
    swiftLanguageModes: [.v6]
)

// One settings loop for all targets; see docs/architecture.md.
for target in package.targets {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}
