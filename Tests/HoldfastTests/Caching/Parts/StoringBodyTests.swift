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
            BytesContent(ByteChunk([1, 2, 3])),
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

    @Test("A body that is released before its end is told, as one that is cancelled")
    func released() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let writer = try await store.write(
            StoreKey([1]),
            variant: StoreKey([]),
            description: EntryDescription(metadata: ByteChunk()),
            expectedLength: nil,
            now: StoreInstant(milliseconds: 0)
        )
        let endings = Mutex<[Int]>([])
        do {
            let body = StoringBody(
                BytesContent(ByteChunk([1, 2, 3])),
                writer: writer,
                background: BackgroundTasks(),
                ending: { received, isWhole in
                    #expect(!isWhole)
                    endings.withLock { $0.append(received) }
                    return .abandon
                },
                finish: { _, _ in nil },
                fail: { _ in }
            )
            _ = try await body.next()
        }
        #expect(endings.withLock { $0 } == [3])
    }
}

@Suite("A stored body that cannot be read", .timeLimit(.minutes(20)))
struct StoredBodySourceTests {
    /// A body whose first read fails.
    final class FailingOnce: StoredBody {
        private let code: StoreError.Code
        private let hasFailed = Mutex(false)

        init(_ code: StoreError.Code) { self.code = code }

        var length: Int? { 3 }
        var bytesInMemory: ByteChunk? { nil }

        func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
            let fails = hasFailed.withLock { hasFailed in
                defer { hasFailed = true }
                return !hasFailed
            }
            if fails { throw StoreError(code, "scripted") }
            return ByteChunk([1, 2, 3])[offset..<min(3, offset + count)]
        }
    }

    @Test("What could not be read does not count as read", arguments: [StoreError.Code.io, .cancelled])
    func unread(_ code: StoreError.Code) async throws {
        let source = StoredBodySource(
            FailingOnce(code),
            pieces: [.literal(ByteChunk([0])), .stored(0..<3)],
            delivered: { _ in },
            failed: { _ in }
        )
        #expect(try await source.next() == ByteChunk([0]))
        await #expect(throws: (any Error).self) { try await source.next() }
        #expect(try await source.next() == ByteChunk([1, 2, 3]))
        #expect(try await source.next() == nil)
    }

    @Test("Leaving a body while its rest is requested ends that request at once", arguments: [true, false])
    func leftWhileHealing(_ cancelsTask: Bool) async throws {
        let (asked, ended) = (CountWatch(), CountWatch())
        let body = HealingBody(ListSource([], fails: true), of: 0..<3) { _ in
            asked.increment()
            try? await CountWatch().wait(for: 1)
            ended.increment()
            return nil
        }
        let reader = Task { try await body.next() }
        try await asked.wait(for: 1)
        if cancelsTask { reader.cancel() } else { body.cancel() }
        await #expect(throws: CancellationError.self) { try await reader.value }
        #expect(ended.count == 1)
    }

    @Test("Of two readers of a joined body at the same time the second is refused, and the first gets its bytes")
    func joinedReaders() async throws {
        let source = GatedSource([ByteChunk([1]), ByteChunk([2])])
        let body = JoinedBody([source])
        let first = Task { try await body.next() }
        try await source.pulled.wait(for: 1)
        let error = await #expect(throws: ServiceError.self) { _ = try await body.next() }
        #expect(error?.message == ServiceError.secondReader.message)
        source.open()
        #expect(try await first.value == ByteChunk([1]))
    }
}
