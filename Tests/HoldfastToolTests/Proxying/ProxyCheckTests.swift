// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import HoldfastTestKit
    import HoldfastTesting
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

        /// A port that was free a moment ago.
        private static func freePort() throws -> UInt16 {
            let server = try LoopbackServer.start { _ in .never }
            server.stop()
            return server.port
        }

        @Test(
            "All 25 checks pass in both modes",
            .enabled(if: isThere, "skipped: the script, or the program beside the tests, is not there"),
            arguments: ["private", "shared"]
        )
        func passes(_ mode: String) async throws {
            let (proxyPort, originPort) = (try Self.freePort(), try Self.freePort())
            let proxy = Process()
            proxy.executableURL = Self.program
            proxy.arguments = [
                "proxy", "--listen", "127.0.0.1:\(proxyPort)", "--origin", "http://127.0.0.1:\(originPort)", "--mode",
                mode,
            ]
            proxy.standardError = FileHandle.nullDevice
            try proxy.run()
            defer { proxy.terminate() }
            let check = Process()
            check.executableURL = URL(filePath: "/usr/bin/env")
            check.arguments = ["python3", Self.script.path, "\(proxyPort)", "\(originPort)"]
            let output = Pipe()
            check.standardOutput = output
            check.standardError = output
            try check.run()
            let text: String = await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let data = output.fileHandleForReading.readDataToEndOfFile()
                    continuation.resume(returning: String(decoding: data, as: UTF8.self))
                }
            }
            #expect(text.contains("25 passed, 0 failed"), "\(text)")
        }
    }
#endif
