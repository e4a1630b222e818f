// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads requests from one connection, in HTTP/1.1 framing (RFC 9112), and keeps the bytes that belong to the next one.
struct LoopbackReader {
    /// A request the server cannot read; it answers 400 and closes.
    struct Malformed: Error {}

    private static let headLimit = 1 << 20
    private let bodyLimit: Int
    private let connection: Int
    private var buffer: [UInt8] = []
    private var position = 0

    init(connection: Int, bodyLimit: Int) {
        self.connection = connection
        self.bodyLimit = bodyLimit
    }

    /// Reads the next head; nil when the client ended the connection between two requests.
    mutating func head(from socket: LoopbackSocket) throws -> LoopbackRequest? {
        var lines: [String] = []
        var size = 0
        while true {
            guard let line = try line(from: socket) else {
                if lines.isEmpty { return nil }
                throw Malformed()
            }
            if line.isEmpty {
                // RFC 9112 §2.2: an empty line before the request line is to be ignored.
                if lines.isEmpty { continue }
                break
            }
            lines.append(line)
            size += line.utf8.count
            guard size <= LoopbackReader.headLimit else { throw Malformed() }
        }
        let parts = lines[0].split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Malformed() }
        let fields = try lines.dropFirst().map { line in
            guard let colon = line.firstIndex(of: ":") else { throw Malformed() }
            let value = line[line.index(after: colon)...]
            return LoopbackField(String(line[..<colon]), LoopbackReader.trimmed(value))
        }
        return LoopbackRequest(
            connection: connection,
            method: String(parts[0]),
            target: String(parts[1]),
            version: String(parts[2]),
            fields: fields
        )
    }

    /// Reads the content that follows the head of `request` into it.
    ///
    /// - Parameter intake: what to do with the content.
    mutating func content(
        of request: inout LoopbackRequest,
        by intake: LoopbackIntake,
        from socket: LoopbackSocket
    ) throws {
        var taker = LoopbackTaker(intake, socket)
        try taker.begin()
        if request.values(of: "Transfer-Encoding").contains(where: { $0.lowercased().contains("chunked") }) {
            try chunks(into: &taker, from: socket)
        } else if let length = request.values(of: "Content-Length").first {
            guard let count = Int(length), count >= 0, count <= bodyLimit else { throw Malformed() }
            try bytes(count, into: &taker, from: socket)
        }
        taker.fill(&request)
    }

    private mutating func chunks(into taker: inout LoopbackTaker, from socket: LoopbackSocket) throws {
        while true {
            guard let line = try line(from: socket) else { throw Malformed() }
            let digits = line.prefix { $0 != ";" && $0 != " " }
            guard let size = Int(digits, radix: 16), size >= 0, size <= bodyLimit - taker.count else {
                throw Malformed()
            }
            if size == 0 { break }
            try bytes(size, into: &taker, from: socket)
            guard try endsLine(from: socket) else { throw Malformed() }
        }
        var trailer = try line(from: socket)
        while trailer?.isEmpty == false { trailer = try line(from: socket) }
    }

    private mutating func endsLine(from socket: LoopbackSocket) throws -> Bool {
        try line(from: socket)?.isEmpty ?? false
    }

    /// The next line without its end; nil when the connection ended before its first byte.
    private mutating func line(from socket: LoopbackSocket) throws -> String? {
        var searched = position
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                var line = buffer[position..<end]
                if line.last == 0x0D { line.removeLast() }
                position = end + 1
                return String(decoding: line, as: UTF8.self)
            }
            guard buffer.count - position <= LoopbackReader.headLimit else { throw Malformed() }
            searched = buffer.count
            guard let more = try socket.receive() else {
                if position == buffer.count { return nil }
                throw LoopbackSocket.Ending.peerClosed
            }
            buffer.append(contentsOf: more)
        }
    }

    private mutating func bytes(
        _ count: Int,
        into taker: inout LoopbackTaker,
        from socket: LoopbackSocket
    ) throws {
        let buffered = buffer[position...].prefix(count)
        position += buffered.count
        var left = count - buffered.count
        try taker.take(buffered)
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            position = 0
        }
        while left > 0 {
            guard let more = try socket.receive(upTo: min(left, 1 << 18)) else {
                throw LoopbackSocket.Ending.peerClosed
            }
            left -= more.count
            try taker.take(more[...])
        }
    }

    private static func trimmed(_ value: Substring) -> String {
        let blanks: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let tail = value.drop(while: blanks)
        guard let last = tail.lastIndex(where: { !blanks($0) }) else { return "" }
        return String(tail[...last])
    }
}
