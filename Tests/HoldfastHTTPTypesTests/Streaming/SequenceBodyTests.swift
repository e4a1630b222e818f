// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Synchronization
    import Testing

    @Suite("Bodies as sequences of bytes", .timeLimit(.minutes(20)))
    struct SequenceBodyTests {
        static func source(of body: RequestBody) async throws -> any ByteSource {
            switch body.form {
            case .factory(_, let make): try await make()
            case .oneShot(_, let source): source
            default: throw ServiceError(.other, "not a stream")
            }
        }

        @Test(
            "Elements come in order, empty ones are skipped, and after the end there is nothing",
            arguments: [true, false]
        )
        func elements(_ isReplayable: Bool) async throws {
            let body = RequestBody.sequence(Chunks(["a", "", "bc", ""]), length: 3, isReplayable: isReplayable)
            #expect(body.isReplayable == isReplayable)
            let source = try await Self.source(of: body)
            #expect(try await source.next()?.array == Array("a".utf8))
            #expect(try await source.next()?.array == Array("bc".utf8))
            #expect(try await source.next() == nil)
            #expect(try await source.next() == nil)
        }

        @Test("A replayable sequence is iterated again for each attempt; any other is not sent again")
        func replay() async throws {
            let request = HTTPRequest(method: .put, scheme: "https", authority: "h", path: "/")
            for isReplayable in [true, false] {
                let transport = ScriptedTransport([.respond(503), .respond(200)])
                var configuration = PipelineConfiguration()
                configuration.clock = ManualClock(autoAdvances: true)
                var rules = RetryRules.default
                rules.replayLimit = 0
                let pipeline = Pipeline(
                    transport: transport,
                    retrierFactory: .backoff(rules),
                    configuration: configuration
                )
                let body = RequestBody.sequence(Chunks(["a", "bc"]), isReplayable: isReplayable)
                let (head, _) = try await pipeline.send(request, body: body)
                #expect(head.status.code == (isReplayable ? 200 : 503))
                #expect(
                    transport.sent.map { $0.body?.array }
                        == Array(repeating: Array("abc".utf8), count: isReplayable ? 2 : 1)
                )
            }
        }

        @Test("A sequence that failed is not restarted, and a second reader gets the same error")
        func failureStays() async throws {
            struct Broken: Error {}
            let begun = Atomic<Int>(0)
            let stream = AsyncThrowingStream<[UInt8], any Error> {
                guard begun.add(1, ordering: .relaxed).newValue == 1 else { return [2] }
                throw Broken()
            }
            let source = try await Self.source(of: .sequence(stream))
            for _ in 1...2 { await #expect(throws: Broken.self) { try await source.next() } }
            #expect(begun.load(ordering: .relaxed) == 1)
        }

        @Test("An error of the sequence is thrown by the body")
        func failure() async throws {
            struct Broken: Error {}
            let stream = AsyncThrowingStream<[UInt8], any Error> { continuation in
                continuation.yield([1])
                continuation.finish(throwing: Broken())
            }
            let source = try await Self.source(of: .sequence(stream))
            #expect(try await source.next()?.array == [1])
            await #expect(throws: Broken.self) { try await source.next() }
        }

        @Test(
            "cancel() ends a waiting next(), and the end of a cancelled stream does not count as the end of the content"
        )
        func cancellation() async throws {
            let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            let source = try await Self.source(of: .sequence(stream))
            continuation.yield([1])
            _ = try await source.next()
            let waiting = Task { try await source.next() }
            source.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            await #expect(throws: CancellationError.self) { try await source.next() }
        }

        @Test("Cancelling the reading task also ends the body")
        func taskCancellation() async throws {
            let (stream, _) = AsyncStream.makeStream(of: [UInt8].self)
            let source = try await Self.source(of: .sequence(stream))
            let reader = Task { try await source.next() }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
        }

        @Test("No element is requested from a sequence before the reader asks for one")
        func pace() async throws {
            let asked = Mutex(0)
            let counted = AsyncStream<[UInt8]> {
                asked.withLock { $0 += 1 }
                return [1]
            }
            let source = try await Self.source(of: .sequence(counted))
            #expect(asked.withLock { $0 } == 0)
            _ = try await source.next()
            _ = try await source.next()
            #expect(asked.withLock { $0 } == 2)
        }

        @Test("slices yields the chunks of a body, cut or whole")
        func slices() async throws {
            let whole = ByteChunk(copying: "abcdef".utf8)
            let body = ResponseBody(whole[2..<4])
            var seen: [ArraySlice<UInt8>] = []
            for try await slice in body.slices { seen.append(slice) }
            #expect(seen.map(Array.init) == [Array("cd".utf8)])
        }
    }
#endif
