// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import NIOCore
    import NIOPosix

    /// An answer as its bytes say.
    struct ProbeAnswer: Sendable {
        /// The heads of interim responses that came before it.
        var interim: [ProbeAnswer] = []
        var status = 0
        var fields = HeaderFields()
        var body: [UInt8] = []

        var text: String { String(decoding: body, as: UTF8.self) }
        subscript(_ name: String) -> String? { values(name).isEmpty ? nil : values(name).joined(separator: ", ") }
        func values(_ name: String) -> [String] { FieldName(name).map { fields.values(of: $0) } ?? [] }
    }

    /// A client that knows no more of HTTP than it takes to read one answer after the other off a connection.
    final class ProbeClient {
        struct Ended: Error {}

        let channel: ByteChannel
        private var unread = ByteBuffer()

        init(port: Int, receiveBuffer: Int32? = nil) async throws {
            var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            if let receiveBuffer {
                bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
            }
            channel = try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture { try ByteChannel.attach(to: channel) }
            }
        }

        deinit { channel.close() }

        func send(_ text: String) async throws {
            try await channel.write(ByteBuffer(string: text))
        }

        /// Asks, and reads the answer with its content.
        func ask(
            _ target: String,
            _ fields: [String] = [],
            method: String = "GET",
            body: String? = nil
        ) async throws -> ProbeAnswer {
            var lines = ["\(method) \(target) HTTP/1.1", "Host: proxy"] + fields
            if let body { lines.append("Content-Length: \(body.utf8.count)") }
            try await send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
            return try await answer(isHead: method == "HEAD")
        }

        /// Reads an answer with its content.
        func answer(isHead: Bool = false) async throws -> ProbeAnswer {
            var interim: [ProbeAnswer] = []
            while true {
                var answer = try await head()
                guard answer.status >= 200 else {
                    interim.append(answer)
                    continue
                }
                answer.interim = interim
                if isHead || answer.status == 204 || answer.status == 304 { return answer }
                if let length = answer["Content-Length"] {
                    answer.body = try await take(Int(length) ?? 0)
                } else if answer["Transfer-Encoding"] == "chunked" {
                    while true {
                        let size = Int(try await line(), radix: 16) ?? 0
                        answer.body += try await take(size)
                        _ = try await line()
                        if size == 0 { break }
                    }
                } else {
                    while let more = try await channel.read() { unread.writeImmutableBuffer(more) }
                    answer.body = Array(buffer: unread)
                    unread.clear()
                }
                return answer
            }
        }

        /// Reads a head: status line and fields.
        func head() async throws -> ProbeAnswer {
            var answer = ProbeAnswer()
            let words = try await line().split(separator: " ", maxSplits: 2)
            guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else { throw Ended() }
            answer.status = status
            while true {
                let line = try await line()
                if line.isEmpty { return answer }
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                answer.fields.append(rawName: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
            }
        }

        /// The next bytes of content as they come, for long ones; nil at the end of the connection.
        func next() async throws -> ByteBuffer? {
            if unread.readableBytes > 0 {
                defer { unread.clear() }
                return unread
            }
            return try await channel.read()
        }

        private func line() async throws -> String {
            while true {
                if let end = unread.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                    let bytes = unread.readBytes(length: end - unread.readerIndex + 1) ?? []
                    return String(decoding: bytes.dropLast(2), as: UTF8.self)
                }
                try await more()
            }
        }

        private func take(_ count: Int) async throws -> [UInt8] {
            while unread.readableBytes < count { try await more() }
            return unread.readBytes(length: count) ?? []
        }

        private func more() async throws {
            guard let more = try await channel.read() else { throw Ended() }
            unread.writeImmutableBuffer(more)
        }
    }
#endif
