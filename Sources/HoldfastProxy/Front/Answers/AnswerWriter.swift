// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore

    /// Writes answers to a connection: a small one in one piece, a larger one as fast as the client takes it.
    struct AnswerWriter {
        /// The answer was cut before its end, and the connection with it, so that the client can see that.
        struct Cut: Error {}

        private let channel: ByteChannel
        private let sliceSize: Int
        private let stallLimit: TimeAmount
        /// Used again for the next answer once the bytes have left; kept only while it is small.
        private var spare = ByteBuffer()
        private static let spareLimit = 16 << 10
        /// How much was sent since others had a turn on the event loop.
        private var sentInTurn = 0
        private static let turn = 1 << 20

        init(_ channel: ByteChannel, configuration: ServerConfiguration) {
            self.channel = channel
            sliceSize = max(configuration.sliceSize, 1)
            stallLimit = configuration.writeStall
        }

        /// Writes a whole answer; whether the connection can be kept.
        ///
        /// - Throws: what ended the connection: it is closed then.
        mutating func write(_ plan: AnswerPlan, _ response: Response) async throws -> Bool {
            var head = spare
            spare = ByteBuffer()
            head.clear()
            let room = if case .bytes(let bytes) = plan.content { min(bytes.count, sliceSize) } else { 0 }
            ResponseHeadWriter.write(plan.status, response.fields, framing: plan.framing, room: room, to: &head)
            do {
                switch plan.content {
                case .none:
                    response.body.discard()
                    try await channel.write(head, stallLimit: stallLimit)
                case .bytes(let bytes):
                    try await write(bytes, behind: &head)
                case .exactly(let length, let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await write(source, exactly: length)
                case .chunked(let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await writeChunks(source)
                case .untilClose(let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await writeAll(source)
                }
            } catch {
                response.body.discard()
                // A client that takes the end of the connection for that of the content has to see a reset.
                if case .untilClose = plan.content { channel.reset() } else { channel.close() }
                throw error
            }
            if head.capacity <= AnswerWriter.spareLimit { spare = head }
            return plan.keepsAlive
        }

        private mutating func write(_ bytes: ByteChunk, behind head: inout ByteBuffer) async throws {
            guard bytes.count > sliceSize else {
                bytes.withUnsafeBytes { _ = head.writeBytes($0) }
                return try await channel.write(head, stallLimit: stallLimit)
            }
            bytes[0..<sliceSize].withUnsafeBytes { _ = head.writeBytes($0) }
            try await channel.write(head, stallLimit: stallLimit)
            try await writeSlices(of: bytes[sliceSize..<bytes.count])
        }

        /// Sends a part of a long body, and gives way to the event loop's other connections now and then: neither a body in memory
        /// nor a client that keeps up would ever make this wait.
        private mutating func send(_ slice: ByteBuffer) async throws {
            sentInTurn += slice.readableBytes
            try await channel.write(slice, stallLimit: stallLimit)
            guard sentInTurn >= AnswerWriter.turn else { return }
            sentInTurn = 0
            await channel.yield()
        }

        private mutating func writeSlices(of bytes: ByteChunk) async throws {
            var offset = 0
            while offset < bytes.count {
                let end = min(bytes.count, offset + sliceSize)
                var slice = ByteBuffer()
                slice.reserveCapacity(end - offset)
                bytes[offset..<end].withUnsafeBytes { _ = slice.writeBytes($0) }
                try await send(slice)
                offset = end
            }
        }

        private mutating func write(_ source: any ByteSource, exactly length: Int) async throws {
            var remaining = length
            while let chunk = try await source.next() {
                // More than was announced is not sent in part: the client would take the answer for whole.
                guard chunk.count <= remaining else { throw Cut() }
                remaining -= chunk.count
                try await writeSlices(of: chunk)
            }
            guard remaining == 0 else { throw Cut() }
        }

        private mutating func writeChunks(_ source: any ByteSource) async throws {
            while let chunk = try await source.next() {
                var offset = 0
                while offset < chunk.count {
                    let end = min(chunk.count, offset + sliceSize)
                    var slice = ByteBuffer()
                    slice.reserveCapacity(end - offset + ChunkedEncoder.overhead)
                    ChunkedEncoder.begin(end - offset, in: &slice)
                    chunk[offset..<end].withUnsafeBytes { _ = slice.writeBytes($0) }
                    ChunkedEncoder.end(in: &slice)
                    try await send(slice)
                    offset = end
                }
            }
            var last = ByteBuffer()
            ChunkedEncoder.finish(in: &last)
            try await channel.write(last, stallLimit: stallLimit)
        }

        private mutating func writeAll(_ source: any ByteSource) async throws {
            while let chunk = try await source.next() { try await writeSlices(of: chunk) }
        }
    }
#endif
