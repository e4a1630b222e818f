// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTestKit

    /// The program `holdfast proxy` in front of an origin, as a process of its own, so that its descriptors and its memory can be
    /// counted.
    final class ProxyProcess: Sendable {
        struct Failure: Error { let text: String }

        let port: Int
        private let process: ChildProcess

        /// Starts the program and waits until it says that it listens.
        init(origin: Int, _ options: [String] = []) async throws {
            let pipe = Pipe()
            process = try ChildProcess(
                ProxyProcess.program.path,
                ["proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin)", "--retry", "none"]
                    // This machine may be so busy that nothing moves for a minute.
                    + options + ["--timeout", "10m"],
                errors: .pipe(pipe)
            )
            port = try await ProxyProcess.port(from: pipe.fileHandleForReading)
        }

        static let program = BuiltProgram.url("holdfast")

        /// How many descriptors it has open.
        var descriptors: Int {
            ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd")) ?? []).count
        }

        /// The most memory it has had resident, in bytes.
        var peakMemory: Int {
            let text = (try? String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
            return (Int(line.filter(\.isNumber)) ?? 0) * 1024
        }

        func signal(_ number: Int32) { process.signal(number) }

        /// Asks it to end.
        ///
        /// - Returns: its exit status.
        func end() async -> Int32 {
            signal(SIGTERM)
            return await process.end()
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
