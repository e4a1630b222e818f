// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastStorage
    internal import NIOCore

    /// Takes the content of a message out of the bytes of a connection.
    enum ContentDecoder: Sendable {
        case length(remaining: Int)
        case chunked(ChunkedDecoder)

        /// Whether all was taken.
        var isAtEnd: Bool {
            switch self {
            case .length(let remaining): remaining == 0
            case .chunked(let decoder): decoder.isAtEnd
            }
        }

        /// How many bytes are to come, where that is known.
        var remaining: Int? { if case .length(let remaining) = self { remaining } else { nil } }

        /// Takes the next content off the front of `bytes`; nil when there is none in there or it has ended.
        mutating func next(in bytes: inout ByteBuffer) throws(MessageFault) -> ByteChunk? {
            switch self {
            case .length(let remaining):
                let count = min(remaining, bytes.readableBytes)
                self = .length(remaining: remaining - count)
                return count > 0 ? bytes.readBytes(length: count).map { ByteChunk($0) } : nil
            case .chunked(var decoder):
                defer { self = .chunked(decoder) }
                var outcome: Result<ChunkedDecoder.Step, MessageFault> = .success(.needsMore)
                bytes.withUnsafeReadableBytes { view in
                    outcome = Result { () throws(MessageFault) in try decoder.next(in: view) }
                }
                switch try outcome.get() {
                case .content(let skipped, let count):
                    bytes.moveReaderIndex(forwardBy: skipped)
                    return bytes.readBytes(length: count).map { ByteChunk($0) }
                case .needsMore:
                    bytes.moveReaderIndex(to: bytes.writerIndex)
                    return nil
                case .end(let skipped):
                    bytes.moveReaderIndex(forwardBy: skipped)
                    return nil
                }
            }
        }

        /// All of the content, where the bytes hold it and it is no longer than `limit`; the bytes are then what follows it.
        func whole(in bytes: inout ByteBuffer, limit: Int) throws(MessageFault) -> ByteChunk? {
            if let remaining, remaining > min(limit, bytes.readableBytes) { return nil }
            var decoder = self
            var rest = bytes
            var content: [UInt8] = []
            while !decoder.isAtEnd {
                let unread = rest.readableBytes
                if let chunk = try decoder.next(in: &rest) {
                    if decoder.isAtEnd, content.isEmpty {
                        bytes = rest
                        return chunk
                    }
                    chunk.append(to: &content)
                }
                guard content.count <= limit, decoder.isAtEnd || rest.readableBytes < unread else { return nil }
            }
            bytes = rest
            return ByteChunk(content)
        }
    }
#endif
