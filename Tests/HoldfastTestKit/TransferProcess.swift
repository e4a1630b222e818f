// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// Other Apple systems start no processes.
#if os(macOS) || os(Linux)
    package import Foundation
    private import Synchronization

    /// A `TransferChild`: a program that moves one long body through one client, so that its memory can be measured by itself.
    package final class TransferProcess: Sendable {
        /// What the program said at its end.
        package struct Report: Decodable, Sendable {
            /// The bytes that were read, or that the server took.
            package var bytes: Int
            /// Whether each byte that was read was right.
            package var isIntact: Bool
            /// By how much the program's memory grew at most, in bytes.
            package var growth: Int
        }

        /// The program could not be started, or failed.
        package struct Failure: Error, CustomStringConvertible {
            package let description: String
        }

        private let process: ChildProcess
        private let input = Pipe()
        private let output = Pipe()
        private let unread = Mutex(Data())

        /// Starts a program.
        ///
        /// - Parameters:
        ///   - client: the client's name.
        ///   - url: what to load, or where to send.
        ///   - direction: "down", "up" or "download".
        ///   - bytes: how many of them.
        ///   - pauses: whether to wait for ``resume()`` after the first chunk.
        ///   - directory: where its temporary files go.
        package init(
            client: String,
            _ url: URL,
            _ direction: String,
            bytes: Int,
            pauses: Bool,
            directory: URL
        ) throws {
            process = try ChildProcess(
                BuiltProgram.url("TransferChild").path,
                [client, url.absoluteString, direction, "\(bytes)"] + (pauses ? ["pause"] : []),
                environment: ["TMPDIR": directory.path],
                input: .pipe(input),
                output: .pipe(output)
            )
        }

        /// Waits until the program has paused.
        package func paused() async throws {
            let line = await nextLine()
            guard line == "paused" else {
                throw Failure(description: "it should pause, but said: \(line ?? "nothing")")
            }
        }

        /// Lets the program go on.
        package func resume() throws {
            try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
        }

        /// Waits for the program's end.
        package func report() async throws -> Report {
            guard let line = await nextLine() else { throw Failure(description: "it ended without a word") }
            do {
                return try JSONDecoder().decode(Report.self, from: Data(line.utf8))
            } catch {
                throw Failure(description: "it said: \(line)")
            }
        }

        /// The next line, read on a thread that may wait; nil at the end.
        private func nextLine() async -> String? {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: self.readLine()) }
            }
        }

        private func readLine() -> String? {
            while true {
                let line: String? = unread.withLock { data in
                    guard let end = data.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                    defer { data.removeSubrange(data.startIndex...end) }
                    return String(decoding: data[data.startIndex..<end], as: UTF8.self)
                }
                if let line { return line }
                let more = output.fileHandleForReading.availableData
                if more.isEmpty { return nil }
                unread.withLock { $0.append(more) }
            }
        }
    }
#endif
