// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastTestKit
    import NIOCore
    import NIOHPACK
    import NIOPosix
    import NIOSSL

    @testable import HoldfastProxy

    /// A client of HTTP/2 over TLS that writes the frames that a test wants, and takes its first step without waiting.
    final class HTTP2Frames {
        struct Frame {
            let type: UInt8
            let flags: UInt8
            let stream: Int
            let payload: ByteBuffer
        }

        static let (data, headers, settings, ping, goAway, continuation): (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) =
            (0, 1, 4, 6, 7, 9)

        let bytes: ByteChannel
        private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
        private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
        private var unread = ByteBuffer()

        /// Connects, and sends the preface with what follows it.
        init(port: Int) async throws {
            var tls = try LoopbackCertificate.trustingConfiguration()
            tls.applicationProtocols = ["h2"]
            tls.certificateVerification = .none
            let context = try NIOSSLContext(configuration: tls)
            bytes = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = try NIOSSLClientHandler(context: context, serverHostname: nil)
                        try channel.pipeline.syncOperations.addHandler(handler)
                        return try ByteChannel.attach(to: channel)
                    }
                }
        }

        deinit { bytes.close() }

        /// The preface of a connection, with empty settings.
        static var preface: ByteBuffer {
            var buffer = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            buffer.writeImmutableBuffer(frame(settings, flags: 0, stream: 0, payload: ByteBuffer()))
            return buffer
        }

        static var acknowledgement: ByteBuffer { frame(settings, flags: 1, stream: 0, payload: ByteBuffer()) }

        static func frame(_ type: UInt8, flags: UInt8, stream: Int, payload: ByteBuffer) -> ByteBuffer {
            var buffer = ByteBuffer()
            let length = payload.readableBytes
            buffer.writeBytes([
                UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags,
            ])
            buffer.writeInteger(UInt32(stream))
            buffer.writeImmutableBuffer(payload)
            return buffer
        }

        /// A GET in as many frames as it needs, the stream's end included.
        func get(_ path: String, stream: Int, _ fields: [(String, String)] = []) throws -> ByteBuffer {
            var block = ByteBuffer()
            try encoder.encode(headers: HTTP2Client.head("GET", path, fields), to: &block)
            var frames = ByteBuffer()
            var type = HTTP2Frames.headers
            repeat {
                let part = block.readSlice(length: min(16_384, block.readableBytes)) ?? ByteBuffer()
                let isLast: UInt8 = block.readableBytes == 0 ? 4 : 0
                let ends: UInt8 = type == HTTP2Frames.headers ? 1 : 0
                frames.writeImmutableBuffer(
                    HTTP2Frames.frame(type, flags: isLast | ends, stream: stream, payload: part)
                )
                type = HTTP2Frames.continuation
            } while block.readableBytes > 0
            return frames
        }

        func send(_ buffer: ByteBuffer) async throws { try await bytes.write(buffer) }

        /// The next frame; nil at the end of the connection.
        func next() async throws -> Frame? {
            while true {
                if let frame = takeFrame() { return frame }
                guard let more = try await bytes.read() else { return nil }
                unread.writeImmutableBuffer(more)
            }
        }

        /// The status of the next head, and its stream; nil if the connection ends first.
        func status() async throws -> (stream: Int, status: String)? {
            while let frame = try await next() {
                if frame.type == HTTP2Frames.goAway { return nil }
                guard frame.type == HTTP2Frames.headers else { continue }
                var payload = frame.payload
                let head = try decoder.decodeHeaders(from: &payload)
                return (frame.stream, head[":status"].first ?? "")
            }
            return nil
        }

        private func takeFrame() -> Frame? {
            guard
                let head = unread.getBytes(at: unread.readerIndex, length: 5),
                let stream = unread.getInteger(at: unread.readerIndex + 5, as: UInt32.self)
            else { return nil }
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard unread.readableBytes >= 9 + length else { return nil }
            unread.moveReaderIndex(forwardBy: 9)
            let payload = unread.readSlice(length: length) ?? ByteBuffer()
            return Frame(type: head[3], flags: head[4], stream: Int(stream), payload: payload)
        }
    }
#endif
