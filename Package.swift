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
        .library(name: "HoldfastAsyncHTTPClient", targets: ["HoldfastAsyncHTTPClient"]),
        .library(name: "HoldfastHTTPTypes", targets: ["HoldfastHTTPTypes"]),
        .library(name: "HoldfastObservability", targets: ["HoldfastObservability"]),
        .library(name: "HoldfastProxy", targets: ["HoldfastProxy"]),
        .library(name: "HoldfastRedis", targets: ["HoldfastRedis"]),
        .library(name: "HoldfastSimulation", targets: ["HoldfastSimulation"]),
        .library(name: "HoldfastTesting", targets: ["HoldfastTesting"]),
        .executable(name: "holdfast", targets: ["HoldfastTool"]),
        .executable(name: "quickstart", targets: ["Quickstart"]),
        .executable(name: "weather-example", targets: ["WeatherExample"]),
    ],
    traits: [
        // Nothing is on by default, so a plain build fetches no package.
        .default(enabledTraits: []),
        .trait(
            name: "AsyncHTTPClient",
            description: "AsyncHTTPClient beneath and around a pipeline: HoldfastAsyncHTTPClient."
        ),
        .trait(
            name: "HTTPTypes",
            description: "HTTPRequest and HTTPResponse of swift-http-types in and out: HoldfastHTTPTypes."
        ),
        .trait(
            name: "Observability",
            description:
                "Logs, metrics and traces by swift-log, -metrics and -distributed-tracing: HoldfastObservability."
        ),
        .trait(
            name: "Redis",
            description: "A store that many machines share, over Redis or Valkey, by hiredis: HoldfastRedis."
        ),
        .trait(
            name: "XML",
            description: "XML endpoints, by XMLCoder: InputFormat.XML and OutputFormat.XML of HoldfastXML."
        ),
        .trait(
            name: "Crypto",
            description: "Encryption at rest where there is no CryptoKit, by swift-crypto: AEADSeal of HoldfastCrypto."
        ),
        .trait(name: "Proxy", description: "A caching, retrying HTTP proxy, by swift-nio: HoldfastProxy."),
        .trait(
            name: "Tool",
            description: "The command-line tool `holdfast`: proxy, get, cache, replay.",
            enabledTraits: ["Proxy", "AsyncHTTPClient"]
        ),
    ],
    dependencies: [
        // Each stands behind a trait and is fetched where that is enabled, and nowhere else.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.100.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/CoreOffice/XMLCoder", from: "0.18.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .target(name: "HoldfastSemantics"),
        .target(name: "HoldfastStorage"),
        .target(name: "Holdfast", dependencies: ["HoldfastSemantics", "HoldfastStorage"]),
        .target(name: "HoldfastServices", dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage"]),
        .target(name: "HoldfastTesting", dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage"]),
        // What foretells hit ratios and retry storms. A program that serves needs none of it.
        .target(name: "HoldfastSimulation", dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage"]),
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
        .target(
            name: "HoldfastAsyncHTTPClient",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(
                    name: "Tracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
            ]
        ),
        .target(
            name: "HoldfastHTTPTypes",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"])),
            ]
        ),
        .target(
            name: "HoldfastObservability",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Observability"])),
                .product(
                    name: "Tracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["Observability"])
                ),
            ]
        ),
        // What the programs share: console, command line, tables, progress line, Control-C.
        .target(name: "HoldfastCommand"),
        .executableTarget(
            name: "WeatherExample",
            dependencies: [
                "HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastAsyncHTTPClient",
                "HoldfastHTTPTypes",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"])),
            ]
        ),
        .systemLibrary(
            name: "CHiredis",
            path: "Sources/CHiredis",
            pkgConfig: "hiredis",
            providers: [.apt(["libhiredis-dev"]), .brew(["hiredis"])]
        ),
        .target(
            name: "HoldfastRedis",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage",
                .target(name: "CHiredis", condition: .when(traits: ["Redis"])),
            ]
        ),
        .target(
            name: "HoldfastProxy",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOTLS", package: "swift-nio", condition: .when(traits: ["Proxy"])),
            ]
        ),
        .executableTarget(
            name: "HoldfastTool",
            dependencies: [
                "HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastAsyncHTTPClient",
                "HoldfastProxy", "HoldfastRedis", "HoldfastSimulation",
                .product(
                    name: "ArgumentParser",
                    package: "swift-argument-parser",
                    condition: .when(traits: ["Tool"])
                ),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: .when(traits: ["Tool"])),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Tool"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Tool"])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Tool"])),
            ]
        ),
        .executableTarget(
            name: "Quickstart",
            dependencies: ["HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastServices", "HoldfastStorage"]
        ),

        // How many tests run at a time, for all test targets: they are one program.
        .target(name: "HoldfastTestWidth", path: "Tests/HoldfastTestWidth"),
        // What several test targets use and no user needs.
        .target(
            name: "HoldfastTestKit",
            dependencies: [
                "HoldfastCommand", "Holdfast", "HoldfastStorage", "HoldfastTesting",
                .product(
                    name: "NIOSSL",
                    package: "swift-nio-ssl",
                    condition: .when(traits: ["AsyncHTTPClient", "Proxy"])
                ),
            ],
            path: "Tests/HoldfastTestKit"
        ),
        .testTarget(name: "HoldfastCommandTests", dependencies: ["HoldfastCommand", "HoldfastTestKit"]),
        .executableTarget(
            name: "WeatherService",
            dependencies: ["HoldfastTesting"],
            path: "Tests/WeatherService"
        ),
        // The key paths, of whose costs `.ci/path-costs` keeps a record.
        .target(name: "CPathCosts", path: "Tests/CPathCosts"),
        .executableTarget(
            name: "PathCosts",
            dependencies: ["CPathCosts", "Holdfast", "HoldfastSemantics", "HoldfastStorage"],
            path: "Tests/PathCosts"
        ),
        .executableTarget(
            name: "TransferChild",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastAsyncHTTPClient",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
            ],
            path: "Tests/TransferChild"
        ),
        .testTarget(
            name: "HoldfastSemanticsTests",
            dependencies: ["HoldfastSemantics", "HoldfastTesting", "HoldfastTestKit"],
            resources: [.copy("Fixtures")]
        ),
        .testTarget(
            name: "HoldfastStorageTests",
            dependencies: [
                "HoldfastStorage", "HoldfastSemantics", "HoldfastSimulation", "HoldfastTesting", "HoldfastTestKit",
            ]
        ),
        .testTarget(
            name: "HoldfastTests",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastSimulation", "HoldfastTesting",
                "HoldfastTestKit", "HoldfastTestWidth",
            ]
        ),
        .testTarget(
            name: "RecipesTests",
            dependencies: [
                "Holdfast", "HoldfastSemantics", "HoldfastServices", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestWidth",
            ]
        ),
        .testTarget(
            name: "HoldfastSimulationTests",
            dependencies: [
                "HoldfastSimulation", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestKit",
            ]
        ),
        .testTarget(
            name: "HoldfastServicesTests",
            dependencies: [
                "HoldfastServices", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestKit",
            ]
        ),
        .testTarget(
            name: "HoldfastCryptoTests",
            dependencies: ["HoldfastCrypto", "Holdfast", "HoldfastStorage", "HoldfastTesting"]
        ),
        .testTarget(
            name: "HoldfastXMLTests",
            dependencies: ["HoldfastXML", "HoldfastServices", "Holdfast", "HoldfastSemantics", "HoldfastTesting"]
        ),
        .testTarget(
            name: "HoldfastTestingTests",
            dependencies: [
                "HoldfastTesting", "HoldfastTestKit", "Holdfast", "HoldfastSemantics", "HoldfastSimulation",
                "HoldfastStorage", "TransferChild",
            ]
        ),
        .testTarget(
            name: "HoldfastAsyncHTTPClientTests",
            dependencies: [
                "HoldfastAsyncHTTPClient", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestKit", "TransferChild",
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["AsyncHTTPClient"])),
                .product(
                    name: "InMemoryTracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
                .product(
                    name: "Tracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["AsyncHTTPClient"])
                ),
            ]
        ),
        .testTarget(
            name: "HoldfastHTTPTypesTests",
            dependencies: [
                "HoldfastHTTPTypes", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "WeatherExample",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"])),
            ]
        ),
        .testTarget(
            name: "HoldfastObservabilityTests",
            dependencies: [
                "HoldfastObservability", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "InMemoryLogging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Observability"])),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Observability"])),
                .product(
                    name: "Tracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["Observability"])
                ),
                .product(
                    name: "InMemoryTracing",
                    package: "swift-distributed-tracing",
                    condition: .when(traits: ["Observability"])
                ),
            ]
        ),
        .testTarget(
            name: "HoldfastProxyTests",
            dependencies: [
                "HoldfastProxy", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestKit",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Proxy"])),
                .product(name: "NIOTLS", package: "swift-nio", condition: .when(traits: ["Proxy"])),
            ]
        ),
        .testTarget(
            name: "HoldfastRedisTests",
            dependencies: [
                "HoldfastRedis", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting",
                "HoldfastTestKit",
            ]
        ),
        .testTarget(
            name: "HoldfastToolTests",
            dependencies: [
                "HoldfastTool", "HoldfastCommand", "HoldfastProxy", "HoldfastRedis", "Holdfast", "HoldfastSemantics",
                "HoldfastSimulation", "HoldfastStorage", "HoldfastTesting", "HoldfastTestKit",
                .product(
                    name: "ArgumentParser",
                    package: "swift-argument-parser",
                    condition: .when(traits: ["Tool"])
                ),
            ]
        ),
        .testTarget(
            name: "WeatherExampleTests",
            dependencies: [
                "WeatherExample", "WeatherService", "HoldfastCommand", "HoldfastTesting", "HoldfastTestKit",
            ]
        ),
        .testTarget(name: "ConsumerTests", dependencies: ["HoldfastTestKit"]),
        .testTarget(
            name: "QuickstartTests",
            dependencies: ["Quickstart", "HoldfastCommand", "HoldfastSemantics", "HoldfastTesting", "HoldfastTestKit"]
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: ["Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastTesting", "HoldfastProxy"],
            resources: [.copy("Fixtures")]
        ),
        .executableTarget(
            name: "CrashChild",
            dependencies: ["HoldfastStorage", "HoldfastTesting"],
            path: "Tests/CrashChild"
        ),
        .testTarget(
            name: "CrashTests",
            dependencies: ["CrashChild", "HoldfastStorage", "HoldfastTesting", "HoldfastTestKit"]
        ),
        .testTarget(name: "ArchitectureTests", dependencies: ["HoldfastTestKit"]),
    ],
    swiftLanguageModes: [.v6]
)

// One settings loop for all targets; see docs/architecture.md.
for target in package.targets where target.type != .system {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}

// Tests that ask for no trait are the same under all of them. Whoever has run them without traits can leave them out of a build
// with traits: `HOLDFAST_TEST_TARGETS` names the test targets to build, separated by commas; all if it is not set.
if let named = Context.environment["HOLDFAST_TEST_TARGETS"]?.split(separator: ",").map(String.init) {
    package.targets.removeAll { $0.type == .test && !named.contains($0.name) }
}

// A command plugin is fetched whether anything uses it or not, so it is there for those who ask:
// `HOLDFAST_DOCUMENTATION=1 swift package generate-documentation`. All traits are on then, since the catalogs of the products
// behind them name what they add.
if Context.environment["HOLDFAST_DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0"))
    let named = package.traits.filter { $0.name != "default" }
    package.traits = named.union([.default(enabledTraits: Set(named.map(\.name)))])
}
