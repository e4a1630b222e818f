// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if os(macOS) || os(Linux)
    internal import Foundation
    package import HoldfastTesting

    /// What 200 MB are moved with: a server that measures what comes and sends a pattern, the child, and a folder for its files.
    package struct TransferBench: Sendable {
        package static let bytes = 200_000_000

        private let bytes: Int
        private let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("holdfast-\(UUID().uuidString)")
        private let server: LoopbackServer

        /// - Parameters:
        ///   - gauge: counts what the server got rid of.
        ///   - bytes: how many are moved.
        package init(_ gauge: ByteGauge = ByteGauge(), bytes: Int = TransferBench.bytes) throws {
            self.bytes = bytes
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            server = try LoopbackServer.start(
                script: LoopbackScript(
                    intake: { _ in .measure },
                    handler: { request in
                        switch (request.path, request.method) {
                        case ("/period", _): LoopbackReply(steps: [.pattern(TransferPattern.period)])
                        case (_, "GET"): LoopbackReply(steps: [.pattern(bytes, gauge: gauge)])
                        default: LoopbackReply(body: request.isPattern ? "\(request.bodyLength)" : "broken")
                        }
                    }
                )
            )
        }

        /// Starts a child.
        ///
        /// - Parameters:
        ///   - client: the client's name.
        ///   - direction: "down", "up" or "download".
        ///   - pauses: whether it waits after the first chunk.
        package func start(_ client: String, _ direction: String, pauses: Bool = true) throws -> TransferProcess {
            try TransferProcess(
                client: client,
                server.url("/long"),
                direction,
                bytes: bytes,
                pauses: pauses,
                directory: directory
            )
        }

        /// The child's files that have a name.
        package var files: [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? ["no directory"]
        }

        /// Whether the last content that the server took was the pattern, whole.
        package var tookPattern: Bool { server.requests.last?.isPattern == true }

        /// Removes the folder and ends the server.
        package func end() {
            server.stop()
            try? FileManager.default.removeItem(at: directory)
        }
    }
#endif
