// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastStorage
    internal import NIOCore

    /// Takes a response's body out of the bytes that arrive behind its head.
    struct BodyDecoder: Sendable {
        private enum State: Sendable {
            case length(Int)
            case chunked(ChunkedDecoder)
            case untilClose
            case ended
        }

        private var state: State
        /// Whether bytes came behind the end of the body: nobody knows what they are, so the connection is of no further use.
        private(set) var hasSurplus = false

        init(_ body: ResponseFraming.Body) {
            switch body {
            case .none: state = .ended
            case .length(let length): state = length > 0 ? .length(length) : .ended
            case .chunked: state = .chunked(ChunkedDecoder(toleratesPadding: true))
            case .untilClose: state = .untilClose
            }
        }

        /// Whether the body has come whole.
        var isAtEnd: Bool { if case .ended = state { true } else { false } }

        /// How many bytes are still to come, where that is known.
        var left: Int? {
            switch state {
            case .length(let left): left
            case .ended: 0
            case .chunked, .untilClose: nil
            }
        }

        /// Takes all of `buffer`.
        ///
        /// - Returns: the content in it; empty where there is none.
        mutating func decode(_ buffer: ByteBuffer) throws(MessageFault) -> ByteChunk {
            switch state {
            case .ended:
                if buffer.readableBytes > 0 { hasSurplus = true }
                return ByteChunk()
            case .untilClose:
                return ByteChunk(Array(buffer.readableBytesView))
            case .length(let left):
                let count = min(left, buffer.readableBytes)
                hasSurplus = buffer.readableBytes > count
                state = count < left ? .length(left - count) : .ended
                return ByteChunk(Array(buffer.readableBytesView.prefix(count)))
            case .chunked(var decoder):
                var content: [UInt8] = []
                var outcome: Result<Void, MessageFault> = .success(())
                buffer.withUnsafeReadableBytes { bytes in
                    content.reserveCapacity(bytes.count)
                    outcome = Result { () throws(MessageFault) in
                        hasSurplus = try BodyDecoder.decode(bytes, by: &decoder, into: &content)
                    }
                }
                try outcome.get()
                state = decoder.isAtEnd ? .ended : .chunked(decoder)
                return ByteChunk(content)
            }
        }

        /// Notes that the server closed its side; false where the body was cut short.
        mutating func endOfInput() -> Bool {
            if case .untilClose = state { state = .ended }
            return isAtEnd
        }

        /// - Returns: whether bytes follow the end of the body.
        private static func decode(
            _ bytes: UnsafeRawBufferPointer,
            by decoder: inout ChunkedDecoder,
            into content: inout [UInt8]
        ) throws(MessageFault) -> Bool {
            var rest = bytes
            while true {
                switch try decoder.next(in: rest) {
                case .content(let skipped, let count):
                    content.append(contentsOf: rest[skipped..<(skipped + count)])
                    rest = UnsafeRawBufferPointer(rebasing: rest[(skipped + count)...])
                case .needsMore: return false
                case .end(let skipped): return skipped < rest.count
                }
            }
        }
    }
#endif
