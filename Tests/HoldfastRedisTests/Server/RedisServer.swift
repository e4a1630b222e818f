// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import HoldfastTestKit
    import Synchronization

    /// A redis-server on a free loopback port, for as long as a test needs it.
    final class RedisServer: Sendable {
        static let program = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { $0 + "/redis-server" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        /// One for all tests that take no server away from each other.
        static let shared = Mutex<RedisServer?>(nil)

        struct NotThere: Error {}

        let port: Int
        private let arguments: [String]
        private let process: Mutex<ChildProcess>

        /// Starts a server and waits until it answers.
        ///
        /// - Parameter arguments: more of its options, as `--name value`.
        init(_ arguments: String...) throws {
            self.arguments = arguments
            for _ in 0..<20 {
                let port = Int.random(in: 20_000..<60_000)
                if let process = try RedisServer.start(on: port, arguments) {
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
        var socketPath: String { RedisServer.socketPath(port) }

        private static func socketPath(_ port: Int) -> String { "/tmp/holdfast-\(port).sock" }

        /// Ends the server without a farewell.
        func kill() {
            process.withLock { process in
                guard process.isRunning else { return }
                process.signal(SIGKILL)
                process.waitUntilExit()
                unlink(socketPath)
            }
        }

        /// Stands still: connections stay, nothing is answered.
        func freeze() { process.withLock { $0.signal(SIGSTOP) } }

        func thaw() { process.withLock { $0.signal(SIGCONT) } }

        /// Begins anew after ``kill()``, empty and on the same port.
        func restart() throws {
            for _ in 0..<50 {
                if let started = try RedisServer.start(on: port, arguments) {
                    process.withLock { $0 = started }
                    return
                }
            }
            throw NotThere()
        }

        /// What a command of the server's own prints.
        @discardableResult
        func ask(_ words: [String]) -> RESPSocket.Reply? {
            guard let socket = RESPSocket(port: port) else { return nil }
            socket.send(words)
            return socket.receive()
        }

        @discardableResult
        func ask(_ words: String...) -> RESPSocket.Reply? { ask(words) }

        /// A number that `INFO` tells.
        func info(_ name: String) -> Int? {
            guard case .text(let text)? = ask("INFO") else { return nil }
            return text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
                .flatMap { Int($0.dropFirst(name.count + 1)) }
        }

        /// - Returns: nil where the port is taken.
        private static func start(on port: Int, _ arguments: [String]) throws -> ChildProcess? {
            guard let program else { throw NotThere() }
            let process = try ChildProcess(
                program,
                [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                    FileManager.default.temporaryDirectory.path, "--unixsocket", socketPath(port),
                ] + arguments
            )
            // A port that is taken ends the server at once.
            for _ in 0..<600 where process.isRunning {
                if let socket = RESPSocket(port: port) {
                    socket.send(["PING"])
                    switch socket.receive() {
                    case .text("PONG")? where process.isRunning: return process
                    case .failure(let text)? where text.hasPrefix("NOAUTH") && process.isRunning: return process
                    default: break
                    }
                }
                Thread.sleep(forTimeInterval: 0.1)
            }
            process.signal(SIGTERM)
            return nil
        }
    }
#endif
