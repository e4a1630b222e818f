// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastTestKit
    import HoldfastTesting
    import Testing

    #if os(macOS) || os(Linux)
        @Suite(
            "200 MB through AsyncHTTPClient, measured in a process of its own",
            .timeLimit(.minutes(20)),
            .serialized
        )
        struct LongTransferTests {
            /// Twice what was measured in a debug build: 1.9 MB both ways.
            private static let memory = 4_000_000
            /// A server may have got rid of this much while nobody reads: it lies in the sockets of both sides.
            private static let ahead = 18_000_000

            @Test("Download: a stalled reader holds the server back and costs little memory")
            func down() async throws {
                let gauge = ByteGauge()
                let bench = try TransferBench(gauge)
                defer { bench.end() }
                let child = try bench.start("async-http-client", "down")
                try await child.paused()
                #expect(gauge.count < Self.ahead, "\(gauge.count)")
                try child.resume()
                let report = try await child.report()
                #expect(report.bytes == TransferBench.bytes)
                #expect(report.isIntact)
                #expect(report.growth < Self.memory, "\(report.growth)")
            }

            @Test("Upload: a stream is sent as it is read and costs little memory")
            func up() async throws {
                let bench = try TransferBench()
                defer { bench.end() }
                let child = try bench.start("async-http-client", "up")
                try await child.paused()
                try child.resume()
                let report = try await child.report()
                #expect(report.bytes == TransferBench.bytes)
                #expect(report.growth < Self.memory, "\(report.growth)")
                #expect(bench.tookPattern)
            }
        }
    #endif
#endif
