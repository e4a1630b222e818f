// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import HoldfastTesting
import Testing

#if os(macOS) || os(Linux)
    @Suite("200 MB through a client, measured in a process of its own", .timeLimit(.minutes(20)), .serialized)
    struct TransferTests {
        /// Twice what was measured in debug builds on a busy machine: 17 to 53 MB down, 9.5 MB up. Of it the limits of the
        /// transport allow 8 MiB; the rest is what Foundation has received and not yet handed to its delegate. AddressSanitizer
        /// keeps what is freed for a while, so under it memory says nothing.
        private static let memory =
            ProcessInfo.processInfo.environment["ASAN_OPTIONS"] == nil ? 106_000_000 : Int.max

        /// Twice what was measured in debug builds on a busy machine: 39 MiB of 800 MB, 44 MiB of 2 GB.
        private static let downloadMemory = memory == .max ? .max : 92_000_000

        @Test("URLSession, download: a stalled reader costs an unlinked file and little memory")
        func down() async throws {
            let gauge = ByteGauge()
            let bench = try TransferBench(gauge)
            defer { bench.end() }
            let child = try bench.start("urlsession", "down")
            try await child.paused()
            try await gauge.wait(for: TransferBench.bytes)
            #expect(bench.files == [], "a spill file has a name")
            try child.resume()
            let report = try await child.report()
            #expect(report.bytes == TransferBench.bytes)
            #expect(report.isIntact)
            #expect(report.growth < Self.memory, "\(report.growth)")
        }

        @Test(
            "URLSession, upload: a stream is collected in a file, which is removed at the end, and costs little memory"
        )
        func up() async throws {
            let bench = try TransferBench()
            defer { bench.end() }
            let child = try bench.start("urlsession", "up")
            try await child.paused()
            try child.resume()
            let report = try await child.report()
            #expect(report.bytes == TransferBench.bytes)
            #expect(report.growth < Self.memory, "\(report.growth)")
            #expect(bench.files == [])
            #expect(bench.tookPattern)
        }

        @Test("A session passed in, download: every byte is right, whatever it costs")
        func foreign() async throws {
            let bench = try TransferBench()
            defer { bench.end() }
            let report = try await bench.start("urlsession-foreign", "down", pauses: false).report()
            #expect(report.bytes == TransferBench.bytes)
            #expect(report.isIntact)
        }

        /// With `HOLDFAST_DOWNLOAD_BYTES=2000000000` beyond what may wait on disk for other readers.
        @Test(
            "URLSession, download to a file: costs little memory whatever its length, and leaves no other file",
            arguments: ["urlsession", "urlsession-foreign"]
        )
        func download(client: String) async throws {
            let bytes =
                ProcessInfo.processInfo.environment["HOLDFAST_DOWNLOAD_BYTES"].flatMap { Int($0) }
                ?? TransferBench.bytes
            let bench = try TransferBench(bytes: bytes)
            defer { bench.end() }
            let report = try await bench.start(client, "download", pauses: false).report()
            #expect(report.bytes == bytes)
            #expect(report.isIntact)
            #expect(report.growth < Self.downloadMemory, "\(report.growth)")
            #expect(bench.files == [])
        }

        @Test("A missing client is reported")
        func unknown() async throws {
            let bench = try TransferBench()
            defer { bench.end() }
            let child = try bench.start("no-such-client", "down")
            let failure = await #expect(throws: TransferProcess.Failure.self) { try await child.report() }
            #expect(failure?.description.contains("no-such-client") == true)
        }
    }
#endif
