// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// Where a package manager can be run.
#if os(macOS) || os(Linux)
    import Foundation
    import HoldfastTestKit
    import Testing

    /// Makes a package as a user would, and looks at what Holdfast brings along.
    @Suite("A package that depends on Holdfast", .timeLimit(.minutes(20)))
    struct ConsumerPackageTests {
        @Test("With the default traits, the package resolves to itself alone and fetches nothing")
        func defaultTraits() async throws {
            let consumer = try ConsumerPackage()
            defer { consumer.remove() }
            let resolving = try await consumer.package("resolve")
            #expect(resolving.status == 0, "\(resolving.output)")
            let listing = try await consumer.package("show-dependencies", "--format", "flatlist")
            #expect(listing.status == 0, "\(listing.output)")
            let names = listing.output.split(separator: "\n").map { String($0) }
            #expect(names == ["holdfast"])
            #expect(consumer.contents(".build/checkouts") == [])
            #expect(consumer.contents(".build/repositories") == [])
            #expect(try consumer.pins() == [])
        }

        @Test("The manifest declares packages, each behind a trait, so the other tests prove something")
        func declared() throws {
            let manifest = try String(
                contentsOf: ConsumerPackage.root.appending(path: "Package.swift"),
                encoding: .utf8
            )
            #expect(manifest.contains(".default(enabledTraits: [])"))
            let products = manifest.components(separatedBy: ".product(").dropFirst()
            #expect(products.count > 1)
            for product in products {
                let text = product.prefix { $0 != "]" }
                #expect(text.contains("condition: .when(traits: ["), "without a trait: .product(\(text)")
            }
        }
    }

    /// A package in a directory of its own that uses Holdfast by its path.
    struct ConsumerPackage {
        static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()

        private let folder: URL

        /// A new one; the checkout of Holdfast is linked under the project's name: its folder may be called anything.
        init() throws {
            let files = FileManager.default
            folder = files.temporaryDirectory.appending(path: "holdfast-consumer-\(UUID().uuidString)")
            try files.createDirectory(at: folder.appending(path: "app/Sources/App"), withIntermediateDirectories: true)
            try files.createSymbolicLink(at: folder.appending(path: "holdfast"), withDestinationURL: Self.root)
            let manifest = """
                // swift-tools-version: 6.1
                import PackageDescription
                let package = Package(
                    name: "app",
                    platforms: [.macOS(.v15)],
                    dependencies: [.package(path: "../holdfast")],
                    targets: [
                        .executableTarget(name: "App", dependencies: [.product(name: "Holdfast", package: "holdfast")])
                    ]
                )
                """
            try Data(manifest.utf8).write(to: folder.appending(path: "app/Package.swift"))
            try Data("import Holdfast\n".utf8).write(to: folder.appending(path: "app/Sources/App/main.swift"))
        }

        func remove() {
            try? FileManager.default.removeItem(at: folder)
        }

        /// The names in a folder of the package; none where it does not exist.
        func contents(_ path: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "app/\(path)").path)) ?? []
        }

        /// The packages that were pinned; none where no pins were written.
        func pins() throws -> [String] {
            let file = folder.appending(path: "app/Package.resolved")
            guard FileManager.default.fileExists(atPath: file.path) else { return [] }
            let text = try String(contentsOf: file, encoding: .utf8)
            return text.components(separatedBy: "\"identity\"").dropFirst().map { String($0.prefix(60)) }
        }

        /// Runs the package manager.
        func package(_ arguments: String...) async throws -> (status: Int32, output: String) {
            try await ChildProcess.run(
                "swift",
                ["package", "--package-path", folder.appending(path: "app").path] + arguments,
                // What the package manager says about its doings; only what it prints as its answer is compared.
                errors: .discarded
            )
        }
    }
#endif
