// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import Foundation
    import HoldfastTesting
    import Testing

    #if os(macOS) || os(Linux)
        @Suite(
            "200 MB through AsyncHTTPClient, measured in a process of its own",
            .timeLimit(.minutes(20)),
            .serialized
        )
        struct LongTransferTests {
            private static let bytes = 200_000_000
            /// Twice what was measured in a debug build: 1.9 MB both ways.
            private static let memory = 4_000_000
            /// A server may have got rid of this much while nobody reads: it lies in the sockets of both sides.
            private static let ahead = 18_000_000

            private let directory = FileManager.default.temporaryDirectory
                .appendingPathComponent("holdfast-\(UUID().uuidString)")

            /// The child's file, which the build puts beside the tests.
            private static var program: URL {
                #if os(Linux)
                    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
                    return URL(fileURLWithPath: tests).deletingLastPathComponent()
                        .appendingPathComponent("TransferChild")
                #else
                    // Tests are in a bundle on Apple systems, which stands beside the products.
                    return Bundle(for: BundleMark.self).bundleURL.deletingLastPathComponent()
                        .appendingPathComponent("TransferChild")
                #endif
            }

            private func start(_ server: LoopbackServer, _ direction: String) throws -> TransferProcess {
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
                return try TransferProcess(
                    Self.program,
                    client: "async-http-client",
                    server.url("/long"),
                    direction,
                    bytes: Self.bytes,
                    pauses: true,
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

            @Test("down: a reader that stands still holds the server back, and costs little memory")
            func down() async throws {
                defer { try? FileManager.default.removeItem(at: directory) }
                let gauge = ByteGauge()
                let server = try Self.server(gauge)
                let child = try start(server, "down")
                try await child.paused()
                #expect(gauge.count < Self.ahead, "\(gauge.count)")
                try child.resume()
                let report = try await child.report()
                #expect(report.bytes == Self.bytes)
                #expect(report.isIntact)
                #expect(report.growth < Self.memory, "\(report.growth)")
            }

            @Test("up: a stream goes out as it is read, and costs little memory")
            func up() async throws {
                defer { try? FileManager.default.removeItem(at: directory) }
                let server = try Self.server(ByteGauge())
                let child = try start(server, "up")
                try await child.paused()
                try child.resume()
                let report = try await child.report()
                #expect(report.bytes == Self.bytes)
                #expect(report.growth < Self.memory, "\(report.growth)")
                #expect(server.requests.last?.isPattern == true)
            }
        }

        private final class BundleMark {}
    #endif
#endif
