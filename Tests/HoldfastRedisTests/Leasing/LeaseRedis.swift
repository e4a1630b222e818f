// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation

    /// A redis-server on a free loopback port, for as long as a test needs it.
    final class LeaseRedis: Sendable {
        static let program = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { $0 + "/redis-server" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        let port: Int
        private let process: Process

        /// Starts a server and waits until it answers.
        init() throws {
            struct NotThere: Error {}
            guard let program = LeaseRedis.program else { throw NotThere() }
            var started: (Process, Int)?
            for _ in 0..<20 where started == nil {
                let port = Int.random(in: 20_000..<60_000)
                let process = Process()
                process.executableURL = URL(fileURLWithPath: program)
                process.arguments = [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                    FileManager.default.temporaryDirectory.path,
                ]
                process.standardOutput = FileHandle.nullDevice
                try process.run()
                // A port that is taken ends the server at once.
                for _ in 0..<600 where started == nil && process.isRunning {
                    if let socket = RESPSocket(port: port) {
                        socket.send(["PING"])
                        if socket.receive() == .text("PONG"), process.isRunning { started = (process, port) }
                    }
                    if started == nil { Thread.sleep(forTimeInterval: 0.1) }
                }
                if started == nil { process.terminate() }
            }
            guard let started else { throw NotThere() }
            (process, port) = started
        }

        deinit { kill() }

        /// Ends the server without a farewell.
        func kill() {
            guard process.isRunning else { return }
            #if canImport(Darwin)
                Darwin.kill(process.processIdentifier, SIGKILL)
            #else
                Glibc.kill(process.processIdentifier, SIGKILL)
            #endif
            process.waitUntilExit()
        }
    }
#endif
