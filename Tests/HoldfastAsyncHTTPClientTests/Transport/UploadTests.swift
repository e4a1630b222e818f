// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Dispatch
    import Holdfast
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOPosix
    import Testing

    @testable import HoldfastAsyncHTTPClient

    @Suite("Request content on its way to the client", .timeLimit(.minutes(20)))
    struct UploadTests {
        private static let pieceLength = 64 << 10
        private static let pieceCount = 20

        @Test("Content runs no further ahead of a busy event loop than its stride")
        func pace() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let (busy, gauge, seen) = (DispatchSemaphore(value: 0), ByteGauge(), ByteGauge())
            group.any().execute {
                busy.wait()
                seen.add(gauge.count)
            }
            let source = Pieces(gauge)
            let upload = Upload(length: nil, loops: group) { source }
            let client = Task {
                var count = 0
                for try await buffer in upload { count += buffer.readableBytes }
                return count
            }
            try await gauge.wait(for: 256 << 10)
            // Time for one that does not wait.
            for _ in 0..<5000 where gauge.count < Self.pieceCount * Self.pieceLength { await Task {}.value }
            busy.signal()
            #expect(try await client.value == Self.pieceCount * Self.pieceLength)
            #expect(upload.progress == .bodySent)
            try await group.shutdownGracefully()
            #expect(seen.count <= 256 << 10)
        }

        @Test("It says how far it was requested, and fails once it was abandoned")
        func progress() async throws {
            let source = Pieces(ByteGauge())
            let upload = Upload(length: nil, loops: MultiThreadedEventLoopGroup.singleton) { source }
            #expect(upload.progress == .headSent)
            _ = try await upload.next()
            #expect(upload.progress == .headSent)
            upload.cancel()
            #expect(source.isCancelled)
            await #expect(throws: CancellationError.self) { try await upload.next() }
            #expect(upload.failure == nil)
            let empty = Upload(length: 0, loops: MultiThreadedEventLoopGroup.singleton) { source }
            #expect(empty.progress == .bodySent)
        }

        @Test("The chunk that completes the declared length is given only once the source has ended")
        func longerThanDeclared() async throws {
            let source = Pieces(ByteGauge())
            let upload = Upload(length: 2 * Self.pieceLength, loops: MultiThreadedEventLoopGroup.singleton) { source }
            #expect(try await upload.next()?.readableBytes == Self.pieceLength)
            await #expect(throws: HTTPClientError.bodyLengthMismatch) { try await upload.next() }
            #expect(upload.failure != nil)
        }

        private final class Pieces: ByteSource {
            private let gauge: ByteGauge
            private let cancelled = CountWatch()

            init(_ gauge: ByteGauge) {
                self.gauge = gauge
            }

            var isCancelled: Bool { cancelled.count > 0 }

            func next() async throws -> ByteChunk? {
                guard gauge.count < pieceCount * pieceLength else { return nil }
                gauge.add(pieceLength)
                return ByteChunk([UInt8](repeating: 7, count: pieceLength))
            }

            func cancel() {
                cancelled.increment()
            }
        }
    }
#endif
