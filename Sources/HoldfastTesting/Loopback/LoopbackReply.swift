// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// What the server does with a request: a head, with scripted steps before and after it.
///
/// ```swift
/// LoopbackReply(fields: [("ETag", "\"a\"")], body: "hello")
/// LoopbackReply(framing: .chunked, steps: [.send("first"), .pause(gate), .send("second")])
/// LoopbackReply(before: [.reset])
/// ```
public struct LoopbackReply: Sendable {
    /// How the end of the body is marked.
    public struct Framing: Sendable, Hashable {
        package enum Kind: Sendable, Hashable {
            case automatic, chunked, untilClose, bare
            case length(Int)
        }

        package let kind: Kind

        /// Content-Length with the number of bytes in the script, unless the fields already specify a framing.
        public static let automatic = Framing(kind: .automatic)
        /// The chunked coding, one chunk for each step.
        public static let chunked = Framing(kind: .chunked)
        /// No framing field; the connection ends after the body.
        public static let untilClose = Framing(kind: .untilClose)
        /// No framing field, and the connection stays open.
        public static let bare = Framing(kind: .bare)
        /// Content-Length with this number, whatever the script sends; the connection ends after a shorter body.
        public static func length(_ bytes: Int) -> Framing { Framing(kind: .length(bytes)) }
    }

    /// One step of a script.
    public struct Step: Sendable {
        package enum Kind: Sendable {
            case send([UInt8])
            case pattern(Int, ByteGauge?)
            case raw([UInt8])
            case interim(Int, [LoopbackField])
            case pause(LoopbackGate)
            case close, reset, never, halfClose
        }

        package let kind: Kind

        /// Sends bytes of the body.
        public static func send(_ bytes: [UInt8]) -> Step { Step(kind: .send(bytes)) }
        /// Sends text of the body.
        public static func send(_ text: String) -> Step { Step(kind: .send(Array(text.utf8))) }
        /// Sends this many bytes of the `TransferPattern`, generated as they are sent; each such step continues where the
        /// previous one of the reply stopped.
        ///
        /// - Parameters:
        ///   - count: how many bytes.
        ///   - gauge: counts the bytes as the socket takes them.
        package static func pattern(_ count: Int, gauge: ByteGauge? = nil) -> Step {
            Step(kind: .pattern(count, gauge))
        }
        /// Sends bytes outside any framing, for example a reply that is not HTTP.
        public static func raw(_ text: String) -> Step { Step(kind: .raw(Array(text.utf8))) }
        /// Sends an interim (1xx) head.
        public static func interim(_ status: Int, fields: [(String, String)] = []) -> Step {
            Step(kind: .interim(status, fields.map { LoopbackField($0.0, value: $0.1) }))
        }
        /// Waits until the gate opens; the script ends if the peer disconnects meanwhile.
        public static func pause(_ gate: LoopbackGate) -> Step { Step(kind: .pause(gate)) }
        /// Closes the connection normally, at once.
        public static let close = Step(kind: .close)
        /// Closes the connection with a TCP reset, at once.
        public static let reset = Step(kind: .reset)
        /// Closes the server's side of the connection, and continues to read until the peer disconnects.
        public static let halfClose = Step(kind: .halfClose)
        /// Sends nothing more until the peer disconnects.
        public static let never = Step(kind: .never)
    }

    /// The status code.
    public var status: Int
    /// The reason phrase; empty by default.
    public var reason = ""
    /// The header field lines in order; names may repeat.
    public var fields: [LoopbackField]
    /// How the end of the body is marked.
    public var framing: Framing
    /// The steps before the head.
    public var before: [Step]
    /// The steps after the head.
    public var steps: [Step]
    /// Whether the connection ends after this reply; false by default.
    public var closes = false

    /// A scripted reply.
    public init(
        _ status: Int = 200,
        fields: [(String, String)] = [],
        framing: Framing = .automatic,
        before: [Step] = [],
        steps: [Step] = []
    ) {
        self.status = status
        self.fields = fields.map { LoopbackField($0.0, value: $0.1) }
        self.framing = framing
        self.before = before
        self.steps = steps
    }

    /// A reply with a body of bytes.
    public init(_ status: Int = 200, fields: [(String, String)] = [], bytes: [UInt8]) {
        self.init(status, fields: fields, steps: [.send(bytes)])
    }

    /// A reply with a body of text.
    public init(_ status: Int = 200, fields: [(String, String)] = [], body: String) {
        self.init(status, fields: fields, bytes: Array(body.utf8))
    }

    /// Reads the request and never answers; the connection stays open until the peer closes it.
    public static let never = LoopbackReply(before: [.never])

    /// The number of body bytes in the script.
    package var scriptedLength: Int {
        steps.reduce(0) { sum, step in
            switch step.kind {
            case .send(let bytes): sum + bytes.count
            case .pattern(let count, _): sum + count
            case .raw, .interim, .pause, .close, .reset, .never, .halfClose: sum
            }
        }
    }
}

/// What the server does with a connection that it has accepted, before it answers any request.
public struct LoopbackOpening: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case serve, close, reset
        case breakAfter(Int, resetting: Bool)
    }

    package let kind: Kind

    /// Serves requests.
    public static let serve = LoopbackOpening(kind: .serve)
    /// Closes the connection normally before it reads a byte.
    public static let close = LoopbackOpening(kind: .close)
    /// Closes the connection with a TCP reset before it reads a byte.
    public static let reset = LoopbackOpening(kind: .reset)

    /// Reads this many bytes, then closes the connection, possibly in the middle of a request.
    public static func breaking(afterBytes count: Int, resetting: Bool) -> LoopbackOpening {
        LoopbackOpening(kind: .breakAfter(count, resetting: resetting))
    }

    /// Whether the connection ends with a reset.
    var resets: Bool {
        switch kind {
        case .serve, .close: false
        case .reset: true
        case .breakAfter(_, let resetting): resetting
        }
    }

    /// How many bytes are read before the connection is closed; nil if it is served.
    var byteCount: Int? {
        switch kind {
        case .serve: nil
        case .close, .reset: 0
        case .breakAfter(let count, _): count
        }
    }
}

/// Writes one reply to a connection, step by step.
struct LoopbackWriter {
    /// What to do with the connection after a reply.
    enum Outcome {
        case keep, close, reset
    }

    private let reply: LoopbackReply
    private let sendsBody: Bool
    private var isChunked = false
    private var patternPosition = 0
    /// Whether a step of the script cut the reply short.
    private(set) var wasBrokenOff = false

    init(_ reply: LoopbackReply, to request: LoopbackRequest) {
        self.reply = reply
        // RFC 9110 §6.4.1: no content after HEAD, 204 and 304, whatever the fields say.
        sendsBody = request.method != "HEAD" && reply.status != 204 && reply.status != 304
    }

    /// Runs the script.
    mutating func write(to socket: LoopbackSocket) throws(LoopbackSocket.Ending) -> Outcome {
        for step in reply.before {
            if let outcome = try run(step, on: socket) {
                wasBrokenOff = true
                return outcome
            }
        }
        try socket.send(head())
        for step in reply.steps {
            if let outcome = try run(step, on: socket) {
                wasBrokenOff = true
                return outcome
            }
        }
        if isChunked && sendsBody { try socket.send(Array("0\r\n\r\n".utf8)) }
        if reply.closes { return .close }
        switch reply.framing.kind {
        case .automatic, .chunked, .bare: return .keep
        case .untilClose: return .close
        case .length(let length): return sendsBody && reply.scriptedLength != length ? .close : .keep
        }
    }

    private mutating func head() -> [UInt8] {
        var fields = reply.fields
        switch reply.framing.kind {
        case .automatic:
            let isFramed = fields.contains { $0.isNamed("Content-Length") || $0.isNamed("Transfer-Encoding") }
            if !isFramed && reply.status != 204 && reply.status != 304 {
                fields.append(LoopbackField("Content-Length", value: "\(reply.scriptedLength)"))
            }
        case .chunked:
            isChunked = true
            fields.append(LoopbackField("Transfer-Encoding", value: "chunked"))
        case .length(let length):
            fields.append(LoopbackField("Content-Length", value: "\(length)"))
        case .untilClose, .bare:
            break
        }
        return LoopbackWriter.head(reply.status, reason: reply.reason, fields: fields)
    }

    private static func head(_ status: Int, reason: String, fields: [LoopbackField]) -> [UInt8] {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("HTTP/1.1 \(status) \(reason)\r\n\(lines)\r\n".utf8)
    }

    private mutating func run(
        _ step: LoopbackReply.Step,
        on socket: LoopbackSocket
    ) throws(LoopbackSocket.Ending) -> Outcome? {
        switch step.kind {
        case .send(let bytes):
            guard sendsBody, !bytes.isEmpty else { return nil }
            if isChunked { try socket.send(Array("\(String(bytes.count, radix: 16))\r\n".utf8)) }
            try socket.send(bytes)
            if isChunked { try socket.send(Array("\r\n".utf8)) }
        case .pattern(let count, let gauge):
            guard sendsBody else { return nil }
            try sendPattern(count, gauge: gauge, on: socket)
        case .raw(let bytes):
            try socket.send(bytes)
        case .interim(let status, let fields):
            try socket.send(LoopbackWriter.head(status, reason: "", fields: fields))
        case .pause(let gate):
            try socket.wait(at: gate)
        case .never:
            try socket.wait(at: nil)
        case .halfClose:
            socket.end()
            try socket.drain()
            return .close
        case .close:
            return .close
        case .reset:
            return .reset
        }
        return nil
    }

    private mutating func sendPattern(
        _ count: Int,
        gauge: ByteGauge?,
        on socket: LoopbackSocket
    ) throws(LoopbackSocket.Ending) {
        var left = count
        while left > 0 {
            let part = TransferPattern.bytes(left, at: patternPosition)
            if isChunked { try socket.send(Array("\(String(part.count, radix: 16))\r\n".utf8)) }
            try socket.send(part) { gauge?.add($0) }
            if isChunked { try socket.send(Array("\r\n".utf8)) }
            patternPosition += part.count
            left -= part.count
        }
    }
}
