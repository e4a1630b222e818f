// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// A header field line, as received or to be sent.
public struct LoopbackField: Sendable, Hashable {
    /// The name, in its original case.
    public var name: String
    /// The value, without surrounding whitespace.
    public var value: String

    /// A field line.
    public init(_ name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the line has this name, in any case.
    package func isNamed(_ other: String) -> Bool { name.lowercased() == other.lowercased() }
}

/// A request exactly as the server received it.
public struct LoopbackRequest: Sendable, Hashable {
    /// Its number in the order of arrival, over all connections; the first is 0.
    public package(set) var number = 0
    /// The connection that it arrived on; the first is 0.
    public let connection: Int
    /// The method token.
    public let method: String
    /// The request target, as in the request line.
    public let target: String
    /// The protocol version, as in the request line.
    public let version: String
    /// The header field lines in order.
    public let fields: [LoopbackField]
    /// The content, without a chunked coding; empty if the server's ``LoopbackIntake`` did not keep it.
    public package(set) var body: [UInt8] {
        didSet {
            content = TransferPattern.Checker()
            content.read(ByteChunk(body))
        }
    }
    /// The check of content that was not kept.
    package var content = TransferPattern.Checker()

    /// A received request.
    package init(connection: Int, method: String, target: String, version: String, fields: [LoopbackField]) {
        self.connection = connection
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        body = []
    }

    /// The length of the content, kept or not.
    public var bodyLength: Int { content.count }

    /// Whether the content, kept or not, is a ``TransferPattern`` from its first byte.
    package var isPattern: Bool { content.isIntact }

    /// The values of all lines with this name, in order.
    public func values(of name: String) -> [String] { fields.filter { $0.isNamed(name) }.map(\.value) }

    /// The content as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The target before its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// Whether the client wants the connection to end after this exchange.
    var asksToClose: Bool {
        var options: Set<String> = []
        for value in values(of: "Connection") {
            for option in value.lowercased().split(separator: ",") { options.insert(option.filter { $0 != " " }) }
        }
        return options.contains("close") || (version == "HTTP/1.0" && !options.contains("keep-alive"))
    }
}

/// What a server does with the content of a request, after it has read the head.
public struct LoopbackIntake: Sendable {
    package enum Kind: Sendable {
        case keep, measure
        case hold(Int, LoopbackGate)
        case breakOff(Int, resetting: Bool)
    }

    package let kind: Kind

    /// Reads the content and keeps it in the record: the default.
    public static let keep = LoopbackIntake(kind: .keep)

    /// Reads the content, and keeps only its length.
    public static let measure = LoopbackIntake(kind: .measure)

    /// Reads this many bytes of the content or a little more, then none until the gate opens, then the rest. Keeps only its
    /// length.
    public static func holding(after bytes: Int = 0, at gate: LoopbackGate) -> LoopbackIntake {
        LoopbackIntake(kind: .hold(bytes, gate))
    }

    /// Reads this many bytes of the content or a little more, then ends the exchange without an answer.
    ///
    /// - Parameters:
    ///   - bytes: how much of the content; 0 by default.
    ///   - resetting: whether the connection (HTTP/1.1) ends with a TCP reset; in HTTP/2 the stream is always reset.
    public static func breaking(after bytes: Int = 0, resetting: Bool) -> LoopbackIntake {
        LoopbackIntake(kind: .breakOff(bytes, resetting: resetting))
    }
}

/// Reads the content of one request, as its intake says.
struct LoopbackTaker {
    /// The exchange must end here.
    enum Refusal: Error {
        case resets, closes
    }

    private let intake: LoopbackIntake
    private let socket: LoopbackSocket
    private var kept: [UInt8] = []
    private var content = TransferPattern.Checker()
    private var isHeld: Bool

    init(_ intake: LoopbackIntake, socket: LoopbackSocket) {
        self.intake = intake
        self.socket = socket
        if case .hold = intake.kind { isHeld = true } else { isHeld = false }
    }

    /// How many bytes were read so far.
    var count: Int { content.count }

    /// Begins, before any bytes are read; there may be none to read.
    mutating func begin() throws { try take([]) }

    /// Processes the next bytes; may wait at a gate after them.
    mutating func take(_ bytes: ArraySlice<UInt8>) throws {
        bytes.withUnsafeBytes { content.read($0) }
        switch intake.kind {
        case .keep:
            kept += bytes
        case .measure:
            break
        case .hold(let limit, let gate):
            guard isHeld, content.count >= limit else { return }
            isHeld = false
            // The end of the connection may come after content that nobody reads, so only a reset or the gate ends the wait.
            try socket.wait(at: gate)
        case .breakOff(let limit, let resetting):
            guard content.count >= limit else { return }
            throw resetting ? Refusal.resets : Refusal.closes
        }
    }

    /// Stores what was read in the request.
    func fill(_ request: inout LoopbackRequest) {
        if case .keep = intake.kind { request.body = kept } else { request.content = content }
    }
}

/// Reads requests from one connection, in HTTP/1.1 framing (RFC 9112), and keeps bytes of the next one.
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

    /// Reads the next head; nil if the client closed the connection between two requests.
    mutating func head(from socket: LoopbackSocket) throws -> LoopbackRequest? {
        var lines: [String] = []
        var size = 0
        while true {
            guard let line = try line(from: socket) else {
                if lines.isEmpty { return nil }
                throw Malformed()
            }
            if line.isEmpty {
                // RFC 9112 §2.2: ignore an empty line before the request line.
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
            return LoopbackField(String(line[..<colon]), value: LoopbackReader.trimmed(value))
        }
        return LoopbackRequest(
            connection: connection,
            method: String(parts[0]),
            target: String(parts[1]),
            version: String(parts[2]),
            fields: fields
        )
    }

    /// Reads the content after the head of `request` into it.
    ///
    /// - Parameter intake: what to do with the content.
    mutating func content(
        of request: inout LoopbackRequest,
        by intake: LoopbackIntake,
        from socket: LoopbackSocket
    ) throws {
        var taker = LoopbackTaker(intake, socket: socket)
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

    /// The next line without its end; nil if the connection ended before its first byte.
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

    private mutating func bytes(_ count: Int, into taker: inout LoopbackTaker, from socket: LoopbackSocket) throws {
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
