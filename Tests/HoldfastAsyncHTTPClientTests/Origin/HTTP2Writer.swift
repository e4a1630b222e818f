// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOHPACK
    import NIOHTTP2

    /// Plays one reply over a stream, as fast as the peer takes it.
    struct HTTP2Writer {
        private let reply: LoopbackReply
        private let sendsBody: Bool
        private let outbound: NIOAsyncChannelOutboundWriter<HTTP2Frame.FramePayload>
        private let loop: any EventLoop
        private var sent = 0

        init(
            _ reply: LoopbackReply,
            to request: LoopbackRequest,
            _ outbound: NIOAsyncChannelOutboundWriter<HTTP2Frame.FramePayload>,
            on loop: any EventLoop
        ) {
            self.reply = reply
            self.loop = loop
            self.outbound = outbound
            sendsBody = request.method != "HEAD" && reply.status != 204 && reply.status != 304
        }

        /// Runs the script; false where it breaks the exchange off.
        mutating func write() async throws -> Bool {
            for step in reply.before where try await !run(step) { return false }
            let headers = head()
            try await outbound.write(.headers(.init(headers: headers, endStream: !sendsBody)))
            guard sendsBody else { return true }
            for step in reply.steps where try await !run(step) { return false }
            if case .length(let length) = reply.framing.kind, length != sent { return false }
            try await outbound.write(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)))
            return true
        }

        private func head() -> HPACKHeaders {
            var headers: HPACKHeaders = [":status": "\(reply.status)"]
            for field in reply.fields where !field.isNamed("Connection") && !field.isNamed("Transfer-Encoding") {
                headers.add(name: field.name.lowercased(), value: field.value)
            }
            switch reply.framing.kind {
            case .automatic
            where !headers.contains(name: "content-length") && reply.status != 204 && reply.status != 304:
                headers.add(name: "content-length", value: "\(scriptedLength)")
            case .length(let length):
                headers.add(name: "content-length", value: "\(length)")
            case .automatic, .chunked, .untilClose, .bare:
                break
            }
            return headers
        }

        private var scriptedLength: Int {
            reply.steps.reduce(0) { sum, step in
                switch step.kind {
                case .send(let bytes): sum + bytes.count
                case .pattern(let count, _): sum + count
                default: sum
                }
            }
        }

        /// Runs a step; false where it breaks the exchange off.
        private mutating func run(_ step: LoopbackReply.Step) async throws -> Bool {
            switch step.kind {
            case .send(let bytes):
                try await send(ByteBuffer(bytes: bytes))
            case .pattern(let count, let gauge):
                var left = count
                while sendsBody, left > 0 {
                    let part = TransferPattern.bytes(left, at: sent)
                    try await send(part.withUnsafeBytes { ByteBuffer(bytes: $0) })
                    gauge?.add(part.count)
                    left -= part.count
                }
            case .interim(let status, let fields):
                var headers: HPACKHeaders = [":status": "\(status)"]
                for field in fields { headers.add(name: field.name.lowercased(), value: field.value) }
                try await outbound.write(.headers(.init(headers: headers)))
            case .pause(let gate):
                gate.arrive()
                try await gate.opened()
            case .never:
                try await CountWatch().wait(for: 1)
            case .raw:
                break
            case .close, .reset, .halfClose:
                return false
            }
            return true
        }

        private mutating func send(_ buffer: ByteBuffer) async throws {
            guard sendsBody, buffer.readableBytes > 0 else { return }
            sent += buffer.readableBytes
            try await outbound.write(.data(.init(data: .byteBuffer(buffer))))
            // A write waits for a stream that takes no more only once the loop has seen it, which may be many writes later.
            try await loop.submit {}.get()
        }
    }
#endif
