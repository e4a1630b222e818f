// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

@Suite("A body whose reader leaves while a chunk is being stored", .timeLimit(.minutes(20)))
struct StoringBodyTests {
    /// A writer whose appends wait until they are let through.
    final class GatedWriter: EntryWriter {
        let inner: any EntryWriter
        let reached = CountWatch()
        let gate = CountWatch()

        init(_ inner: any EntryWriter) { self.inner = inner }

        func append(_ bytes: ByteChunk) async throws(StoreError) {
            reached.increment()
            try? await gate.wait(for: 1)
            try await inner.append(bytes)
        }

        func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
            try await inner.commit(description, now: now)
        }

        func abandon() { inner.abandon() }
        func follow() -> any StoredBody { inner.follow() }
    }

    @Test("The entry has exactly as many bytes as it says")
    func cancelledInAppend() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let now = StoreInstant(milliseconds: 0)
        let writer = GatedWriter(
            try await store.write(
                StoreKey([1]),
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk()),
                expectedLength: nil,
                now: now
            )
        )
        let background = BackgroundTasks()
        let body = StoringBody(
            BytesSource(ByteChunk([1, 2, 3])),
            writer: writer,
            background: background,
            ending: { received, _ in .commitAs(EntryDescription(metadata: ByteChunk([UInt8(received)]))) },
            finish: { writer, description in
                _ = try? await writer.commit(description, now: now)
                return nil
            },
            fail: { _ in }
        )
        let reading = Task { try await body.next() }
        try await writer.reached.wait(for: 1)
        body.cancel()
        writer.gate.increment()
        _ = try? await reading.value
        await background.drain()
        let entry = try #require(try await store.entries(for: StoreKey([1]), now: now).first)
        #expect(entry.bodyLength == 3)
        #expect(entry.description.metadata.array == [3])
    }
}
