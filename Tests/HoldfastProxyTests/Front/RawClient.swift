// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import NIOCore
    import NIOPosix

    /// A client that sends and reads bytes as a test says, over a real socket.
    final class RawClient: Sendable {
        let bytes: ByteChannel

        init(_ bytes: ByteChannel) {
            self.bytes = bytes
        }

        static func connect(to server: HTTPServer, receiveBuffer: Int32? = nil) async throws -> RawClient {
            guard let address = server.localAddress else { throw ChannelFault(.closed) }
            var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            if let receiveBuffer {
                bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
            }
            let bytes = try await bootstrap.connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture { try ByteChannel.attach(to: channel) }
            }
            return RawClient(bytes)
        }

        func send(_ text: String) async throws {
            try await bytes.write(ByteBuffer(string: text))
        }

        /// One answer, as text: its head, and as many bytes behind it as the head says; with `isHead` none.
        func answer(isHead: Bool = false) async throws -> String {
            var all = ByteBuffer()
            while true {
                let text = all.withUnsafeReadableBytes { FieldText.string($0) }
                if let end = text.range(of: "\r\n\r\n") {
                    let head = text[..<end.upperBound]
                    let length = isHead ? 0 : RawClient.length(in: head)
                    let hasAll =
                        length.map { all.readableBytes >= head.unicodeScalars.count + $0 }
                        ?? text[end.upperBound...].hasSuffix("0\r\n\r\n")
                    if hasAll {
                        let total = length.map { head.unicodeScalars.count + $0 } ?? all.readableBytes
                        let answer = all.readString(length: total) ?? ""
                        bytes.putBack(all)
                        return answer
                    }
                }
                guard let more = try await bytes.read() else { return String(buffer: all) }
                all.writeImmutableBuffer(more)
            }
        }

        /// All there is until the other side closes.
        func rest() async throws -> String {
            var all = ByteBuffer()
            while let more = try await bytes.read() { all.writeImmutableBuffer(more) }
            return String(buffer: all)
        }

        /// What one exchange on a connection of its own brings until it is closed.
        static func exchange(_ text: String, with server: HTTPServer) async throws -> String {
            let client = try await connect(to: server)
            defer { client.bytes.close() }
            try await client.send(text)
            return try await client.rest()
        }

        /// The announced length; 0 where there can be no content, nil where it is chunked.
        private static func length(in head: Substring) -> Int? {
            if head.contains("Transfer-Encoding: chunked") { return nil }
            for line in head.split(separator: "\r\n") {
                guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == "content-length" else {
                    continue
                }
                return Int(line[line.index(after: colon)...].drop { $0 == " " }) ?? 0
            }
            return 0
        }
    }

    extension StringProtocol {
        fileprivate func range(of needle: String) -> Range<Index>? {
            firstRange(of: needle)
        }
    }

    extension ByteChannel {
        /// Leaves at once, with a reset.
        func vanish() { reset() }
    }
#endif
