// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the server does with a connection that it has accepted, before any request of it is answered.
public struct LoopbackOpening: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case serve, close, reset
        case breakAfter(Int, resetting: Bool)
    }

    package let kind: Kind

    /// Serves requests.
    public static let serve = LoopbackOpening(kind: .serve)
    /// Ends the connection in good order before it reads a byte.
    public static let close = LoopbackOpening(kind: .close)
    /// Ends the connection with a TCP reset before it reads a byte.
    public static let reset = LoopbackOpening(kind: .reset)

    /// Reads so many bytes, then ends the connection, in the middle of a request as the case may be.
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

    /// How many bytes are read before the connection ends; nil where it is served.
    var byteCount: Int? {
        switch kind {
        case .serve: nil
        case .close, .reset: 0
        case .breakAfter(let count, _): count
        }
    }
}
