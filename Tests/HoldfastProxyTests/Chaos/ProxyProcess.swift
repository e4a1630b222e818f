// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTestKit
    import HoldfastTesting
    import Synchronization

    /// The program `holdfast proxy` in front of an origin, as a process of its own, so that its descriptors and its memory can be
    /// counted.
    final class ProxyProcess: Sendable {
        struct Failure: Error { let text: String }

        let port: Int
        private let process: Mutex<Process>
        private let pid: pid_t
        private let ended: CountWatch
        private let status: Mutex<Int32?>

        /// Starts the program and waits until it says that it listens.
        init(origin: Int, _ options: [String] = []) async throws {
            let process = Process()
            let ended = CountWatch()
            process.executableURL = ProxyProcess.program
            process.arguments =
                ["proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin)", "--retry", "none"]
                + options
            // This machine may be so busy that nothing moves for a minute.
            process.arguments?.append(contentsOf: ["--timeout", "10m"])
            let pipe = Pipe()
            process.standardError = pipe
            process.standardOutput = FileHandle.nullDevice
            process.terminationHandler = { _ in ended.increment() }
            try process.run()
            pid = process.processIdentifier
            self.ended = ended
            self.process = Mutex(process)
            status = Mutex(nil)
            port = try await ProxyProcess.port(from: pipe.fileHandleForReading)
        }

        deinit { kill(pid, SIGKILL) }

        static let program = BuiltProgram.url("holdfast")

        /// How many descriptors it has open.
        var descriptors: Int {
            ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")) ?? []).count
        }

        /// The most memory it has had resident, in bytes.
        var peakMemory: Int {
            let text = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
            return (Int(line.filter(\.isNumber)) ?? 0) * 1024
        }

        func signal(_ number: Int32) { kill(pid, number) }

        /// Asks it to end.
        ///
        /// - Returns: its exit status.
        func end() async throws -> Int32 {
            signal(SIGTERM)
            try await ended.wait(for: 1)
            return process.withLock { $0.terminationStatus }
        }

        /// Waits until no more than so many descriptors are open; a connection that ends is closed a moment later.
        func settled(to count: Int) async throws -> Int {
            var tries = 0
            while descriptors > count, tries < 6_000 {
                tries += 1
                try await Task.sleep(for: .milliseconds(20))
            }
            return descriptors
        }

        /// Reads what it says of where it listens, on a thread that may wait.
        private static func port(from handle: FileHandle) async throws -> Int {
            let text: String = await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var text = ""
                    while !text.contains("listening on http://") || !text.hasSuffix("\n") {
                        let data = handle.availableData
                        if data.isEmpty { break }
                        text += String(decoding: data, as: UTF8.self)
                    }
                    continuation.resume(returning: text)
                    // Whoever does not read on lets the program wait.
                    while !handle.availableData.isEmpty {}
                }
            }
            guard let port = text.split(separator: ":").last.flatMap({ Int($0.filter(\.isNumber)) }) else {
                throw Failure(text: text)
            }
            return port
        }
    }
#endif
