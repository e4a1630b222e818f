// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the server does with a request: a head, and a script of steps before and after it.
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

        /// Content-Length with the number of bytes in the script, unless the fields bring a framing of their own.
        public static let automatic = Framing(kind: .automatic)
        /// The chunked coding, one chunk a step.
        public static let chunked = Framing(kind: .chunked)
        /// No framing field; the connection ends with the body.
        public static let untilClose = Framing(kind: .untilClose)
        /// No framing field, and the connection is kept.
        public static let bare = Framing(kind: .bare)
        /// Content-Length with this number, whatever the script sends; the connection ends with a shorter body.
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
        /// Sends so many bytes of the ``TransferPattern``, made as they go out; a further such step goes on where the last one of
        /// the reply stopped.
        ///
        /// - Parameters:
        ///   - count: how many bytes.
        ///   - gauge: counts the bytes as the socket takes them.
        public static func pattern(_ count: Int, gauge: ByteGauge? = nil) -> Step {
            Step(kind: .pattern(count, gauge))
        }
        /// Sends bytes outside any framing, as for an answer that is not HTTP.
        public static func raw(_ text: String) -> Step { Step(kind: .raw(Array(text.utf8))) }
        /// Sends an interim (1xx) head.
        public static func interim(_ status: Int, _ fields: [(String, String)] = []) -> Step {
            Step(kind: .interim(status, fields.map { LoopbackField($0.0, $0.1) }))
        }
        /// Waits until the gate opens; the script ends when the peer goes away meanwhile.
        public static func pause(_ gate: LoopbackGate) -> Step { Step(kind: .pause(gate)) }
        /// Ends the connection in good order, here and now.
        public static let close = Step(kind: .close)
        /// Ends the connection with a TCP reset, here and now.
        public static let reset = Step(kind: .reset)
        /// Ends the server's own side of the connection and reads on, until the peer goes away.
        public static let halfClose = Step(kind: .halfClose)
        /// Sends nothing any more until the peer goes away.
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

    /// A reply by script.
    public init(
        _ status: Int = 200,
        fields: [(String, String)] = [],
        framing: Framing = .automatic,
        before: [Step] = [],
        steps: [Step] = []
    ) {
        self.status = status
        self.fields = fields.map { LoopbackField($0.0, $0.1) }
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

    /// Takes the request and never answers it; the connection stays until the peer ends it.
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
