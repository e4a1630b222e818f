// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a server does with the content of a request, once its head is there.
public struct LoopbackIntake: Sendable {
    package enum Kind: Sendable {
        case keep, measure
        case hold(Int, LoopbackGate)
        case breakOff(Int, resetting: Bool)
    }

    package let kind: Kind

    /// Reads the content and keeps it in the record: the default.
    public static let keep = LoopbackIntake(kind: .keep)

    /// Reads the content and keeps its length only, and whether it is a ``TransferPattern``.
    public static let measure = LoopbackIntake(kind: .measure)

    /// Reads so many bytes of the content or a little more, then none until the gate opens, then the rest; keeps its length only,
    /// and whether it is a ``TransferPattern``.
    public static func holding(after bytes: Int = 0, at gate: LoopbackGate) -> LoopbackIntake {
        LoopbackIntake(kind: .hold(bytes, gate))
    }

    /// Reads so many bytes of the content or a little more, then ends the exchange without an answer.
    ///
    /// - Parameters:
    ///   - bytes: how much of the content; 0 by default.
    ///   - resetting: whether the connection (HTTP/1.1) ends with a TCP reset; in HTTP/2 the stream always does.
    public static func breaking(after bytes: Int = 0, resetting: Bool) -> LoopbackIntake {
        LoopbackIntake(kind: .breakOff(bytes, resetting: resetting))
    }
}

/// Takes the content of one request, as its intake says.
struct LoopbackTaker {
    /// The exchange is to end here.
    enum Refusal: Error {
        case resets, closes
    }

    private let intake: LoopbackIntake
    private let socket: LoopbackSocket
    private var kept: [UInt8] = []
    private var content = TransferPattern.Checker()
    private var isHeld: Bool

    init(_ intake: LoopbackIntake, _ socket: LoopbackSocket) {
        self.intake = intake
        self.socket = socket
        if case .hold = intake.kind { isHeld = true } else { isHeld = false }
    }

    /// How many bytes came so far.
    var count: Int { content.count }

    /// Nothing has been taken yet, and perhaps nothing is to be.
    mutating func begin() throws {
        try take([])
    }

    /// Takes the next bytes; may wait at a gate after them.
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
            // The end of the connection may lie behind content that nobody reads, so only a reset or the gate ends the wait.
            try socket.wait(at: gate)
        case .breakOff(let limit, let resetting):
            guard content.count >= limit else { return }
            throw resetting ? Refusal.resets : Refusal.closes
        }
    }

    /// Writes down what came.
    func fill(_ request: inout LoopbackRequest) {
        if case .keep = intake.kind { request.body = kept } else { request.content = content }
    }
}
