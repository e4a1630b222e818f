// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// Where a compiler can be run.
#if os(macOS) || os(Linux)
    import Foundation
    import HoldfastTestKit
    import Testing

    /// Compiles small sources against the module under test.
    ///
    /// Modules that do not stand beside HoldfastServices are looked for in the directories that the environment variable
    /// HOLDFAST_MODULES names, divided by colons.
    private enum Compiler {
        static let more =
            ProcessInfo.processInfo.environment["HOLDFAST_MODULES"]?.split(separator: ":").map { String($0) } ?? []

        /// Where the module under test lies: `Modules` beside the test binary, or above it.
        static let modules: URL? = {
            for argument in CommandLine.arguments where argument.contains("/") {
                var folder = URL(filePath: argument).resolvingSymlinksInPath().deletingLastPathComponent()
                while folder.path.count > 1 {
                    let modules = folder.appending(path: "Modules")
                    if has("HoldfastServices", modules.path) { return modules }
                    folder.deleteLastPathComponent()
                }
            }
            return nil
        }()

        static var isComplete: Bool {
            guard let modules else { return true }
            return ([modules.path] + more).contains { has("Holdfast", $0) }
        }

        private static func has(_ module: String, _ folder: String) -> Bool {
            FileManager.default.fileExists(atPath: "\(folder)/\(module).swiftmodule")
        }

        /// What the compiler says, and whether it was content.
        static func check(_ source: String) async throws -> (isFine: Bool, messages: String) {
            let modules = try #require(
                modules,
                "No Modules directory beside or above the test binary; build by SwiftPM."
            )
            let file = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString).swift")
            try Data(source.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let check = try await ChildProcess.run(
                "swiftc",
                ["-typecheck", "-swift-version", "6", file.path] + ([modules.path] + more).flatMap { ["-I", $0] }
            )
            return (check.status == 0, check.output)
        }
    }

    @Suite("Endpoints of two kinds", .timeLimit(.minutes(20)))
    struct EndpointAmbiguityTests {
        private static let preamble = """
            import Foundation
            import HoldfastServices
            struct Api: WebService {
                static let shared = ServiceClient(Api())
                var baseURL: URL { URL(filePath: "/") }
            }
            """

        private static func endpoint(_ name: String, _ kinds: String) -> String {
            """

            struct \(name): \(kinds) {
                typealias Service = Api
                struct Input: Encodable {}
                struct Output: Decodable {}
                let path = "path"
            }
            """
        }

        private static let kinds = ["EmptyEndpoint", "InEndpoint", "OutEndpoint", "InOutEndpoint"]

        @Test(
            "D-T25: an endpoint of two kinds does not compile, and one of each kind does",
            .enabled(if: Compiler.isComplete, "HOLDFAST_MODULES names no directory with the modules below")
        )
        func ambiguity() async throws {
            var single = Self.preamble
            for kind in Self.kinds { single += Self.endpoint("Only\(kind)", kind) }
            let accepted = try await Compiler.check(single)
            #expect(accepted.isFine, "\(accepted.messages)")
            var double = Self.preamble
            var names: [String] = []
            for (index, first) in Self.kinds.enumerated() {
                for second in Self.kinds[(index + 1)...] {
                    names.append("\(first)And\(second)")
                    double += Self.endpoint("\(first)And\(second)", "\(first), \(second)")
                }
            }
            let refused = try await Compiler.check(double)
            #expect(!refused.isFine)
            for name in names {
                #expect(refused.messages.contains("type '\(name)' does not conform to protocol 'Endpoint'"), "\(name)")
            }
        }
    }
#endif
