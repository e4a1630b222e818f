// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Writes one reply to a connection, step by step.
struct LoopbackWriter {
    /// What becomes of the connection after a reply.
    enum Outcome {
        case keep, close, reset
    }

    private let reply: LoopbackReply
    private let sendsBody: Bool
    private var isChunked = false
    private var patternPosition = 0
    /// Whether a step of the script ended the reply before its end.
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
                fields.append(LoopbackField("Content-Length", "\(reply.scriptedLength)"))
            }
        case .chunked:
            isChunked = true
            fields.append(LoopbackField("Transfer-Encoding", "chunked"))
        case .length(let length):
            fields.append(LoopbackField("Content-Length", "\(length)"))
        case .untilClose, .bare:
            break
        }
        return LoopbackWriter.head(reply.status, reply.reason, fields)
    }

    private static func head(_ status: Int, _ reason: String, _ fields: [LoopbackField]) -> [UInt8] {
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
            try sendPattern(count, gauge, on: socket)
        case .raw(let bytes):
            try socket.send(bytes)
        case .interim(let status, let fields):
            try socket.send(LoopbackWriter.head(status, "", fields))
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
        _ gauge: ByteGauge?,
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
