// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastStorage
import Synchronization
import Testing

@Suite("Handing chunks from a feeder to a reader", .timeLimit(.minutes(20)))
struct ChunkHandoffTests {
    @Test("A feeder that arrives while the source is abandoned does not wait forever")
    func feederMeetsCancellation() async throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let handoff = ChunkHandoff()
        let feeder = Mutex<Task<Void, any Error>?>(nil)
        let (started, start) = AsyncStream<Void>.makeStream()
        let task = Task {
            await withTaskCancellationHandler {
                start.finish()
                while !Task.isCancelled { await Task.yield() }
            } onCancel: {
                // In the midst of `cancel()`, and on its thread: what comes first when a sequence ends by its cancellation.
                feeder.withLock { $0 = Task.immediateDetached { try await handoff.demand() } }
            }
        }
        for await _ in started {}
        handoff.adopt(task)
        handoff.cancel()
        await task.value
        let late = try #require(feeder.withLock { $0 })
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    @Test("A reader that arrives while the source is abandoned does not wait forever")
    func readerMeetsCancellation() async {
        for _ in 0..<2_000 {
            let handoff = ChunkHandoff()
            let reader = Task.detached { try await handoff.pull() }
            let owner = Task.detached { handoff.cancel() }
            await owner.value
            await #expect(throws: CancellationError.self) { try await reader.value }
        }
    }

    @Test("Of two readers at the same time the second gets an error, and the first gets the chunk")
    func twoReaders() async throws {
        let handoff = ChunkHandoff()
        await withTaskGroup(of: ByteChunk?.self) { group in
            for _ in 0..<2 { group.addTask { (try? await handoff.pull()) ?? nil } }
            let refused = await group.next()
            #expect(refused == .some(nil))
            handoff.deliver(ByteChunk([1]))
            let delivered = await group.next()
            #expect(delivered == ByteChunk([1]))
        }
    }

    @Test("An earlier end stays, and anyone who abandons later is told of it")
    func firstEndStands() async throws {
        let handoff = ChunkHandoff()
        handoff.end(nil)
        handoff.cancel()
        #expect(try await handoff.pull() == nil)
        await #expect(throws: CancellationError.self) { try await handoff.demand() }
    }
}
