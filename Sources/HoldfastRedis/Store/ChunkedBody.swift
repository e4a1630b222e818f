// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage
    internal import Synchronization

    /// The body of a committed entry, in chunks on the server; they stay while someone reads, and ten minutes after the last
    /// read.
    final class ChunkedBody: StoredBody {
        let length: Int?
        var bytesInMemory: ByteChunk? { nil }
        private let total: Int
        private let name: String
        private let space: SharedSpace
        private let onRead: @Sendable (Int) -> Void
        /// The chunk that was read last: readers continue where they stopped.
        private let last = Mutex<(number: Int, bytes: ByteChunk)?>(nil)

        init(_ name: String, length: Int, in space: SharedSpace, onRead: @escaping @Sendable (Int) -> Void) {
            self.length = length
            total = length
            self.name = name
            self.space = space
            self.onRead = onRead
        }

        deinit {
            let (space, name) = (space, name)
            Task { _ = try? await space.run(.close, with: name) }
        }

        func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
            let offset = max(0, offset)
            guard offset < total, count > 0 else { return ByteChunk() }
            let number = offset / BodyUpload.chunkLength
            let held = last.withLock { $0?.number == number ? $0?.bytes : nil }
            let chunk: ByteChunk
            if let held {
                chunk = held
            } else {
                guard let bytes = try await space.run(.read, with: name, "\(number)").value.bytes else {
                    throw BodyUpload.lost
                }
                let expected = min(BodyUpload.chunkLength, total - number * BodyUpload.chunkLength)
                guard bytes.count == expected else { throw SharedSpace.unreadable }
                chunk = ByteChunk(bytes)
                last.withLock { $0 = (number, chunk) }
            }
            let start = offset - number * BodyUpload.chunkLength
            let piece = chunk[start..<min(chunk.count, start + min(count, chunk.count))]
            onRead(piece.count)
            return piece
        }
    }

    /// A body that arrived with its entry.
    struct InlineBody: StoredBody {
        let bytes: ByteChunk
        let onRead: @Sendable (Int) -> Void

        var length: Int? { bytes.count }
        var bytesInMemory: ByteChunk? { bytes }

        func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
            let start = min(max(0, offset), bytes.count)
            let piece = bytes[start..<(start + min(max(0, count), bytes.count - start))]
            onRead(piece.count)
            return piece
        }
    }

    /// Removals of abandoned writes in progress; anyone who needs room waits until they are done.
    final class PendingReleases: Sendable {
        private let tasks = Mutex<(next: UInt64, running: [UInt64: Task<Void, Never>])>((0, [:]))

        /// Removes what a writer has written from the server, in its own task.
        func add(_ writer: String, in space: SharedSpace) {
            tasks.withLock { tasks in
                let number = tasks.next
                tasks.next += 1
                tasks.running[number] = Task { [self] in
                    _ = try? await space.run(.release, with: writer)
                    self.tasks.withLock { tasks in tasks.running[number] = nil }
                }
            }
        }

        /// Waits until everything abandoned so far is removed, or the server does not answer.
        func settle() async {
            for task in tasks.withLock({ Array($0.running.values) }) { await task.value }
        }
    }
#endif
