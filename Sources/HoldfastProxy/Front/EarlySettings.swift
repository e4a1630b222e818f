// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore

    /// Has the settings of an HTTP/2 server apply from the first request on.
    ///
    /// SwiftNIO applies the server's own settings when the client has acknowledged them (RFC 9113 §6.5.3), and until
    /// then reads heads of at most 16 KiB, although nothing limits what a client may send before it knows the settings.
    /// A larger head in a first request would end the connection. Therefore SwiftNIO gets the acknowledgement right
    /// after the client's first SETTINGS frame, and the client's own is dropped when it comes. A client can do nothing
    /// with this that it could not do by acknowledging early itself.
    final class EarlySettings: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        private enum Place {
            /// In the connection preface, before the first frame.
            case preface(remaining: Int)
            /// In the nine bytes before a frame.
            case header
            case payload(remaining: Int)
            /// Everything is passed on.
            case end
        }

        private static let prefaceLength = 24
        private static let headerLength = 9
        private static let settings: UInt8 = 4
        private static let acknowledgement: UInt8 = 1

        private var place = Place.preface(remaining: EarlySettings.prefaceLength)
        private var header = ByteBuffer()
        private var isFirstFrame = true

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .end = place { return context.fireChannelRead(data) }
            var input = unwrapInboundIn(data)
            var output = context.channel.allocator.buffer(capacity: input.readableBytes + EarlySettings.headerLength)
            while input.readableBytes > 0 { move(from: &input, to: &output) }
            if output.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(output)) }
        }

        private func move(from input: inout ByteBuffer, to output: inout ByteBuffer) {
            switch place {
            case .preface(let remaining):
                let count = EarlySettings.copy(from: &input, to: &output, atMost: remaining)
                place = count < remaining ? .preface(remaining: remaining - count) : .header
            case .header:
                let missing = EarlySettings.headerLength - header.readableBytes
                guard EarlySettings.copy(from: &input, to: &header, atMost: missing) == missing else { return }
                begin(header, to: &output)
                header.clear()
            case .payload(let remaining):
                let count = EarlySettings.copy(from: &input, to: &output, atMost: remaining)
                if count < remaining { place = .payload(remaining: remaining - count) } else { endFrame(to: &output) }
            case .end:
                output.writeBuffer(&input)
            }
        }

        /// Passes the header of a frame on, unless it is the client's acknowledgement.
        private func begin(_ header: ByteBuffer, to output: inout ByteBuffer) {
            let bytes = header.readableBytesView
            let length = bytes.prefix(3).reduce(0) { $0 << 8 | Int($1) }
            let (type, flags) = (bytes[bytes.startIndex + 3], bytes[bytes.startIndex + 4])
            let isAcknowledgement =
                type == EarlySettings.settings && flags & EarlySettings.acknowledgement != 0 && length == 0
            if isFirstFrame {
                output.writeImmutableBuffer(header)
                // Anything else is an error, which SwiftNIO handles.
                guard type == EarlySettings.settings, flags & EarlySettings.acknowledgement == 0 else {
                    place = .end
                    return
                }
            } else if isAcknowledgement {
                place = .end
                return
            } else {
                output.writeImmutableBuffer(header)
            }
            place = .payload(remaining: length)
            if length == 0 { endFrame(to: &output) }
        }

        private func endFrame(to output: inout ByteBuffer) {
            if isFirstFrame {
                isFirstFrame = false
                output.writeBytes([0, 0, 0, EarlySettings.settings, EarlySettings.acknowledgement, 0, 0, 0, 0])
            }
            place = .header
        }

        /// Moves bytes; returns how many.
        private static func copy(from input: inout ByteBuffer, to output: inout ByteBuffer, atMost limit: Int) -> Int {
            guard var part = input.readSlice(length: min(limit, input.readableBytes)) else { return 0 }
            return output.writeBuffer(&part)
        }
    }
#endif
