// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import HoldfastTestKit
    import Testing

    /// The check of PROXY-REQUIREMENTS, where it lies beside the project, against the program itself.
    @Suite("proxy-check", .timeLimit(.minutes(20)))
    struct ProxyCheckTests {
        private static let script = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/tools/proxy-check.py")

        private static let program = BuiltProgram.url("holdfast")

        private static var isThere: Bool {
            FileManager.default.isReadableFile(atPath: script.path)
                && FileManager.default.isExecutableFile(atPath: program.path)
        }

        @Test(
            "All 25 checks pass in both modes",
            .enabled(if: isThere, "skipped: the script, or the program beside the tests, is not there"),
            arguments: ["private", "shared"]
        )
        func passes(_ mode: String) async throws {
            // Below those that the system gives out by itself, which other tests take at any time.
            let (proxyPort, originPort) = (Int.random(in: 10_240..<21_000), Int.random(in: 21_000..<32_000))
            let proxy = try ChildProcess(
                Self.program.path,
                [
                    "proxy", "--listen", "127.0.0.1:\(proxyPort)", "--origin", "http://127.0.0.1:\(originPort)",
                    "--mode", mode,
                ],
                errors: .discarded
            )
            defer { proxy.signal(SIGTERM) }
            let check = try await ChildProcess.run("python3", [Self.script.path, "\(proxyPort)", "\(originPort)"])
            #expect(check.output.contains("25 passed, 0 failed"), "\(check.output)")
        }
    }
#endif
