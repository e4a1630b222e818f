// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTestKit
    import HoldfastTesting
    import Synchronization

    /// The program `holdfast` as a process of its own: its streams, its signals and its exit status.
    final class ToolProcess: Sendable {
        struct Failure: Error { let text: String }

        static let program = BuiltProgram.url("holdfast")

        private let process: ChildProcess
        private let output = ReadText()
        private let errors = ReadText()

        /// Starts the program.
        ///
        /// - Parameters:
        ///   - wrapper: a command in front of it, such as `prlimit`.
        ///   - outputPath: where standard output goes; nil: it is kept.
        init(
            _ arguments: [String],
            wrapper: [String] = [],
            environment: [String: String] = [:],
            outputPath: String? = nil
        ) throws {
            process = try ChildProcess(
                "env",
                wrapper + [ToolProcess.program.path] + arguments,
                environment: environment,
                output: outputPath.map { .file($0) } ?? .pipe(output.pipe),
                errors: .pipe(errors.pipe)
            )
            if outputPath == nil { output.read() }
            errors.read()
        }

        var pid: pid_t { process.pid }

        /// What came on standard output and standard error so far.
        var outputText: String { output.text }
        var errorText: String { errors.text }

        /// Waits until standard error holds a text.
        func says(_ text: String) async throws { try await errors.wait(for: text) }

        /// Waits until standard output holds a text.
        func prints(_ text: String) async throws { try await output.wait(for: text) }

        /// The port that a proxy says it listens on.
        func port() async throws -> Int {
            try await says("listening on ")
            return try port(after: "listening on ")
        }

        /// The port that a proxy says its admin listener has; it says so before it listens itself.
        func adminPort() throws -> Int { try port(after: "admin on ") }

        private func port(after text: String) throws -> Int {
            let line = errorText.split(separator: "\n").first { $0.hasPrefix(text) } ?? ""
            guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else {
                throw Failure(text: errorText)
            }
            return port
        }

        func signal(_ number: Int32) { process.signal(number) }

        /// Waits for its end; the status it exited with.
        func status() async throws -> Int32 {
            let status = await process.end()
            try await errors.wait(for: nil)
            return status
        }

        /// Waits until it has said something; nil if it listens, so that it does not end by itself.
        func refusal() async throws -> String? {
            try await says("\n")
            return errorText.hasPrefix("listening on ") ? nil : errorText
        }

        /// Asks it to end; the status it exited with.
        func end() async throws -> Int32 {
            signal(SIGTERM)
            return try await status()
        }

        /// Processor time it has used, in hundredths of a second.
        var processorTime: Int {
            let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
            let fields = (text.split(separator: ")").last ?? "").split(separator: " ")
            return fields.count > 13 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
        }

        /// Whether a command that tests wrap it in can be run here.
        static func has(_ wrapper: [String]) -> Bool {
            (try? ChildProcess.run("env", wrapper + ["test", "-x", program.path]))?.status == 0
        }
    }

    /// What comes out of a pipe, read by a thread that may wait.
    private final class ReadText: Sendable {
        let pipe = Pipe()
        private let state = Mutex((text: "", isOver: false))
        private let watch = CountWatch()

        var text: String { state.withLock { $0.text } }

        func read() {
            let handle = pipe.fileHandleForReading
            Thread.detachNewThread { [self] in
                while true {
                    let data = handle.availableData
                    state.withLock { state in
                        state.text += String(decoding: data, as: UTF8.self)
                        state.isOver = data.isEmpty
                    }
                    watch.increment()
                    if data.isEmpty { return }
                }
            }
        }

        /// Waits until the text holds another one; nil: until it has ended.
        func wait(for wanted: String?) async throws {
            while true {
                let seen = watch.count
                let (text, isOver) = state.withLock { $0 }
                if let wanted, text.contains(wanted) { return }
                if isOver {
                    guard let wanted else { return }
                    throw ToolProcess.Failure(text: "'\(wanted)' never came: \(text)")
                }
                try await watch.wait(for: seen + 1)
            }
        }
    }

    /// One connection to a server, with blocking calls on a thread of their own.
    enum RawExchange {
        /// Sends a text and reads the answer to the end of the connection; ask for `Connection: close`.
        static func ask(port: Int, _ text: String) async throws -> String {
            try await exchange(connected(port: port), text)
        }

        /// As ``ask(port:_:)`` over a Unix domain socket.
        static func ask(path: String, _ text: String) async throws -> String {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
            let descriptor = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connected(AF_UNIX, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            return try await exchange(descriptor, text)
        }

        /// A GET of a target.
        static func get(_ target: String, port: Int, _ fields: [String] = []) async throws -> String {
            try await ask(port: port, request("GET", target, fields))
        }

        static func request(_ method: String, _ target: String, _ fields: [String] = []) -> String {
            let host = fields.contains { $0.hasPrefix("Host:") } ? [] : ["Host: proxy"]
            return (["\(method) \(target) HTTP/1.1"] + host + fields + ["Connection: close", "", ""])
                .joined(separator: "\r\n")
        }

        /// A connection that nothing is sent on yet; negative if there is none.
        static func connected(port: Int) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connected(AF_INET, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }

        static func connected(
            _ family: Int32,
            _ address: UnsafePointer<sockaddr>,
            _ length: socklen_t
        ) -> Int32 {
            let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0, connect(descriptor, address, length) != 0 else { return descriptor }
            close(descriptor)
            return -1
        }

        private static func exchange(_ descriptor: Int32, _ text: String) async throws -> String {
            guard descriptor >= 0 else { throw ToolProcess.Failure(text: "no connection: \(errno)") }
            return await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let bytes = Array(text.utf8)
                    _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                    var answer: [UInt8] = []
                    var buffer = [UInt8](repeating: 0, count: 65_536)
                    while true {
                        let count = recv(descriptor, &buffer, buffer.count, 0)
                        guard count > 0 else { break }
                        answer += buffer[..<count]
                    }
                    close(descriptor)
                    continuation.resume(returning: String(decoding: answer, as: UTF8.self))
                }
            }
        }
    }

    /// Connections that are opened and held without a complete request.
    final class HeldConnections: Sendable {
        private let descriptors: Mutex<[Int32]>

        /// - Parameter text: what each of them sends.
        init(port: Int, count: Int, text: String = "") {
            let bytes = Array(text.utf8)
            descriptors = Mutex(
                (0..<count).map { _ in
                    let descriptor = RawExchange.connected(port: port)
                    _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                    return descriptor
                }
            )
        }

        /// Closes all of them; may be repeated.
        func close() {
            descriptors.withLock { descriptors in
                for descriptor in descriptors { _ = Glibc.close(descriptor) }
                descriptors = []
            }
        }
    }
#endif
