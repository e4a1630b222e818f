// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import NIOCore

    /// What reading a stream of bytes as request heads comes to.
    struct ReadHeads: Equatable {
        var messages: [RequestMessage] = []
        var fault: MessageFault?
        /// How many bytes follow the heads that were read.
        var rest = 0

        /// Reads heads, one behind the other, from bytes that arrive in the pieces given.
        init(_ bytes: [UInt8], limits: HeadLimits = HeadLimits(), pieces: (Int) -> Int = { _ in .max }) {
            var parser = RequestHeadParser(limits: limits)
            var start = 0
            while start < bytes.count {
                let piece = max(1, pieces(start))
                let end = piece > bytes.count - start ? bytes.count : start + piece
                var buffer = ByteBuffer(bytes: bytes[start..<end])
                start = end
                do throws(MessageFault) {
                    while buffer.readableBytes > 0, let message = try parser.parse(&buffer) {
                        messages.append(message)
                        parser = RequestHeadParser(limits: limits)
                    }
                } catch {
                    fault = error
                    return
                }
            }
        }

        init(_ text: String, limits: HeadLimits = HeadLimits()) {
            self.init(FieldText.bytes(text), limits: limits)
        }
    }
#endif
