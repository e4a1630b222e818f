// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import TransferChild

#if os(macOS) || os(Linux)
    @Suite("200 MB through a client, measured in a process of its own", .timeLimit(.minutes(20)), .serialized)
    struct TransferTests {
        private static let bytes = 200_000_000
        /// Twice what was measured in debug builds on a busy machine: 17 to 53 MB down, 9.5 MB up. Of it the limits of the
        /// transport allow 8 MiB; the rest is what Foundation has received and not yet handed to its delegate.
        private static let memory = 106_000_000

        private let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("holdfast-\(UUID().uuidString)")

        /// The child's file, which the build puts beside the tests.
        private static var program: URL {
            #if os(Linux)
                let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
                return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("TransferChild")
            #else
                // Tests are in a bundle on Apple systems, which stands beside the products.
                return Bundle(for: BundleMark.self).bundleURL.deletingLastPathComponent()
                    .appendingPathComponent("TransferChild")
            #endif
        }

        private func start(
            _ server: LoopbackServer,
            _ client: String,
            _ direction: String,
            pauses: Bool = true
        ) throws -> TransferProcess {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            return try TransferProcess(
                Self.program,
                client: client,
                server.url("/long"),
                direction,
                bytes: Self.bytes,
                pauses: pauses,
                directory: directory
            )
        }

        private static func server(_ gauge: ByteGauge) throws -> LoopbackServer {
            try LoopbackServer.start(
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

        private var files: [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? ["no directory"]
        }

        @Test("URLSession, down: a reader that stands still costs a file without a name, and little memory")
        func down() async throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let gauge = ByteGauge()
            let server = try Self.server(gauge)
            let child = try start(server, "urlsession", "down")
            try await child.paused()
            try await gauge.wait(for: Self.bytes)
            #expect(files == [], "a spill file has a name")
            try child.resume()
            let report = try await child.report()
            #expect(report.bytes == Self.bytes)
            #expect(report.isIntact)
            #expect(report.growth < Self.memory, "\(report.growth)")
        }

        @Test("URLSession, up: a stream is collected in a file, which is gone at the end, and costs little memory")
        func up() async throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let server = try Self.server(ByteGauge())
            let child = try start(server, "urlsession", "up")
            try await child.paused()
            try child.resume()
            let report = try await child.report()
            #expect(report.bytes == Self.bytes)
            #expect(report.growth < Self.memory, "\(report.growth)")
            #expect(files == [])
            #expect(server.requests.last?.isPattern == true)
        }

        @Test("A session of somebody else's, down: every byte is right, whatever it costs")
        func foreign() async throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let server = try Self.server(ByteGauge())
            let report = try await start(server, "urlsession-foreign", "down", pauses: false).report()
            #expect(report.bytes == Self.bytes)
            #expect(report.isIntact)
        }

        @Test("A client that is not there is said so")
        func unknown() async throws {
            defer { try? FileManager.default.removeItem(at: directory) }
            let server = try Self.server(ByteGauge())
            let child = try start(server, "no-such-client", "down")
            let failure = await #expect(throws: TransferProcess.Failure.self) { try await child.report() }
            #expect(failure?.description.contains("no-such-client") == true)
        }
    }

    private final class BundleMark {}
#endif
