// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// The bytes of a body on their way to the server, shared by the writer and its followers.
    ///
    /// Bytes that do not fill a chunk yet are kept here. Unless an entry has taken over the chunks, they are removed when
    /// nobody uses them any more.
    final class BodyUpload: StoredBody {
        /// Slightly less than a power of two, so that a chunk and what Redis puts before it fit into an allocation of 256 KiB.
        static let chunkLength = (256 << 10) - 64
        /// Shorter bodies are stored together with their description.
        static let inlineLength = 16 << 10

        private struct State {
            var tail: [UInt8] = []
            var tailStart = 0
            var sent = 0
            var isFollowed = false
            var isOwned = false
            var isReleased = false
            /// The chunks as the entry's, open until nobody uses the upload any more.
            var opened: ChunkedBody?
        }

        let writer: String
        let name: String
        private let space: SharedSpace
        private let releases: PendingReleases
        private let progress = BodyProgress()
        private let state = Mutex(State())
        private let onRead: @Sendable (Int) -> Void

        init(
            _ writer: String,
            in space: SharedSpace,
            releases: PendingReleases,
            onRead: @escaping @Sendable (Int) -> Void
        ) {
            self.writer = writer
            self.space = space
            self.releases = releases
            self.onRead = onRead
            name = SharedSpace.name() + SharedSpace.name()
        }

        deinit {
            release()
        }

        /// Bytes received so far.
        var count: Int { state.withLock { $0.tailStart + $0.tail.count } }
        /// The bytes that are not in a chunk.
        var tail: [UInt8] { state.withLock { $0.tail } }
        /// Whether anyone may be reading it.
        var isFollowed: Bool { state.withLock { $0.isFollowed } }

        var length: Int? { progress.wholeLength }
        var bytesInMemory: ByteChunk? {
            guard progress.wholeLength != nil else { return nil }
            return state.withLock { $0.sent == 0 ? ByteChunk($0.tail) : nil }
        }

        func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
            let offset = max(0, offset)
            while true {
                let available = try await progress.available(past: offset)
                if offset >= available || count <= 0 { return ByteChunk() }
                let limit = min(count, available - offset)
                let held: ByteChunk? = state.withLock { state in
                    guard offset >= state.tailStart else { return nil }
                    let start = offset - state.tailStart
                    return ByteChunk(copying: state.tail[start..<min(state.tail.count, start + limit)])
                }
                if let held {
                    onRead(held.count)
                    return held
                }
                if let opened = state.withLock({ $0.opened }) {
                    return try await opened.read(from: offset, upTo: limit)
                }
                let number = offset / BodyUpload.chunkLength
                let reply = try await space.client.send(RedisCommand("GET", space.root + "b:\(name):\(number)"))
                guard let bytes = reply.bytes else { throw BodyUpload.lost }
                let start = offset - number * BodyUpload.chunkLength
                guard start < bytes.count else { throw BodyUpload.lost }
                let piece = ByteChunk(bytes)[start..<min(bytes.count, start + limit)]
                onRead(piece.count)
                return piece
            }
        }

        /// Adds bytes, and sends the chunks that they complete.
        func append(_ bytes: ByteChunk, by send: (_ number: Int, _ bytes: [UInt8]) async throws(StoreError) -> Void)
            async throws(StoreError)
        {
            var rest = bytes
            while !rest.isEmpty {
                let full: (number: Int, bytes: [UInt8])? = state.withLock { state in
                    let count = min(rest.count, BodyUpload.chunkLength - state.tail.count)
                    rest[0..<count].append(to: &state.tail)
                    rest = rest[count..<rest.count]
                    return state.tail.count == BodyUpload.chunkLength ? (state.sent, state.tail) : nil
                }
                if let full { try await flush(full, send: send) }
                progress.advance(to: count)
            }
        }

        /// Sends the remaining bytes as a last chunk.
        func finish(_ send: (_ number: Int, _ bytes: [UInt8]) async throws(StoreError) -> Void) async throws(StoreError)
        {
            let last: (number: Int, bytes: [UInt8])? = state.withLock { $0.tail.isEmpty ? nil : ($0.sent, $0.tail) }
            if let last { try await flush(last, send: send) }
        }

        private func flush(
            _ chunk: (number: Int, bytes: [UInt8]),
            send: (_ number: Int, _ bytes: [UInt8]) async throws(StoreError) -> Void
        ) async throws(StoreError) {
            try await send(chunk.number, chunk.bytes)
            state.withLock { state in
                state.sent += 1
                state.tailStart += state.tail.count
                state.tail = []
            }
        }

        /// Notes a follower: the commit must open the body for it.
        func noteFollower() {
            state.withLock { $0.isFollowed = true }
        }

        /// The entry now owns the chunks, and the body is complete.
        ///
        /// - Parameter isOpen: whether the commit has opened the body, so that followers can read on without the entry.
        func handOver(isOpen: Bool) {
            state.withLock { state in
                state.isOwned = true
                guard isOpen, state.sent > 0 else { return }
                state.opened = ChunkedBody(name, length: state.tailStart, in: space, onRead: onRead)
            }
            progress.end(.whole)
        }

        /// The body is complete, although no entry was stored.
        func end() {
            progress.end(.whole)
        }

        /// The body will not be completed.
        func abandon() {
            progress.end(.failed(BodyUpload.abandoned))
            release()
        }

        private func release() {
            let isFirst = state.withLock { state in
                defer { state.isReleased = true }
                return !state.isOwned && !state.isReleased
            }
            if isFirst { releases.add(writer, in: space) }
        }

        static let abandoned = StoreError(
            .abandoned,
            "The writer gave up before the body was complete; send the request again."
        )
        static let lost = StoreError(.superseded, "Redis no longer has the body; send the request again.")
    }
#endif
