// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import Synchronization

    /// A redis-server on a free loopback port, for as long as a test needs it.
    final class RedisServer: Sendable {
        static let program = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { $0 + "/redis-server" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        /// One for all tests that take no server away from each other.
        static let shared = Mutex<RedisServer?>(nil)

        struct NotThere: Error {}

        let port: Int
        private let process: Mutex<Process>

        /// Starts a server and waits until it answers.
        init() throws {
            for _ in 0..<20 {
                let port = Int.random(in: 20_000..<60_000)
                if let process = try RedisServer.start(on: port) {
                    self.port = port
                    self.process = Mutex(process)
                    return
                }
            }
            throw NotThere()
        }

        deinit { kill() }

        static func one() throws -> RedisServer {
            try shared.withLock { shared in
                if let shared { return shared }
                let made = try RedisServer()
                shared = made
                atexit { RedisServer.shared.withLock { $0?.kill() } }
                return made
            }
        }

        var address: String { "redis://127.0.0.1:\(port)" }

        /// Ends the server without a farewell.
        func kill() {
            process.withLock { process in
                guard process.isRunning else { return }
                RedisServer.signal(process, SIGCONT)
                RedisServer.signal(process, SIGKILL)
                process.waitUntilExit()
            }
        }

        /// Stands still: connections stay, nothing is answered.
        func freeze() { process.withLock { RedisServer.signal($0, SIGSTOP) } }

        func thaw() { process.withLock { RedisServer.signal($0, SIGCONT) } }

        /// Begins anew after ``kill()``, empty and on the same port.
        func restart() throws {
            for _ in 0..<50 {
                if let started = try RedisServer.start(on: port) {
                    process.withLock { $0 = started }
                    return
                }
            }
            throw NotThere()
        }

        /// What a command of the server's own prints.
        func ask(_ words: [String]) -> RESPSocket.Reply? {
            guard let socket = RESPSocket(port: port) else { return nil }
            socket.send(words)
            return socket.receive()
        }

        /// - Returns: nil where the port is taken.
        private static func start(on port: Int) throws -> Process? {
            guard let program else { throw NotThere() }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = [
                "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                FileManager.default.temporaryDirectory.path,
            ]
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            // A port that is taken ends the server at once.
            for _ in 0..<600 where process.isRunning {
                if let socket = RESPSocket(port: port) {
                    socket.send(["PING"])
                    if socket.receive() == .text("PONG"), process.isRunning { return process }
                }
                Thread.sleep(forTimeInterval: 0.1)
            }
            process.terminate()
            return nil
        }

        private static func signal(_ process: Process, _ number: Int32) {
            #if canImport(Darwin)
                Darwin.kill(process.processIdentifier, number)
            #else
                Glibc.kill(process.processIdentifier, number)
            #endif
        }
    }
#endif
