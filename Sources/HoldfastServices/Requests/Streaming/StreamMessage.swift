// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

/// One complete message of a stream; closed, because WebSocket has these two kinds (RFC 6455 §5.6).
public enum StreamMessage: Sendable, Hashable {
    /// Text, sent as UTF-8.
    case text(String)
    /// Bytes.
    case binary(Data)

    /// The length in bytes.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }

    /// The bytes; for a text, its UTF-8.
    public var data: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }

    /// The text.
    ///
    /// - Throws: `ServiceError` `.decodingFailed` for bytes that are not UTF-8.
    public func string() throws -> String {
        switch self {
        case .text(let text): text
        case .binary(let data): try ServiceError.text(of: data, named: "message")
        }
    }
}

/// How much a stream may hold and how long it may take to open; everything has a default.
public struct StreamLimits: Sendable, Hashable {
    /// The most bytes of a message, in either direction; 1 MiB by default. If a longer one arrives, the stream ends.
    public var messageSize = 1 << 20
    /// The most messages that wait for their reader; 16 by default, at least 1. Beyond that, no more are taken from the peer
    /// until one has been read.
    public var unreadMessages = 16
    /// The most messages that wait to be sent, while the stream opens or while another one is being sent; 64 by default, at least
    /// 1. A further ``MessageStream/send(_:)`` fails.
    public var unsentMessages = 64
    /// The time the stream may take to open; nil, the default: the `attemptTimeout` of the client's pipeline.
    public var openTimeout: Duration?

    /// The defaults.
    public init() {}
}

/// Why a stream was closed, as one side tells the other (RFC 6455 §7.4).
public struct StreamCloseCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt16

    /// Carries any number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public var description: String { "\(rawValue)" }

    /// 1000: the stream has served its purpose.
    public static let normalClosure = StreamCloseCode(rawValue: 1000)
    /// 1001: the closing side is going away.
    public static let goingAway = StreamCloseCode(rawValue: 1001)
    /// 1002: the other side broke the protocol.
    public static let protocolError = StreamCloseCode(rawValue: 1002)
    /// 1003: a message of a kind that the closing side cannot accept.
    public static let unsupportedData = StreamCloseCode(rawValue: 1003)
    /// 1005: closed without a code; never sent.
    public static let noStatusReceived = StreamCloseCode(rawValue: 1005)
    /// 1006: the connection broke; never sent.
    public static let abnormalClosure = StreamCloseCode(rawValue: 1006)
    /// 1007: a message whose content does not fit its kind.
    public static let invalidFramePayloadData = StreamCloseCode(rawValue: 1007)
    /// 1008: a message that breaks a rule of the closing side.
    public static let policyViolation = StreamCloseCode(rawValue: 1008)
    /// 1009: a message that is too long.
    public static let messageTooBig = StreamCloseCode(rawValue: 1009)
    /// 1010: an extension is missing.
    public static let mandatoryExtensionMissing = StreamCloseCode(rawValue: 1010)
    /// 1011: the closing side failed.
    public static let internalServerError = StreamCloseCode(rawValue: 1011)

    /// Whether the number may be sent in a Close frame (RFC 6455 §7.4.1, §7.4.2).
    public var isSendable: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// A stream was closed, by the peer with its code (including 1000) or by this side.
public struct StreamClosedError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// The code; `.noStatusReceived` if the peer gave none, `.abnormalClosure` if the connection just ended.
    public let code: StreamCloseCode
    /// The reason that came with it, if any.
    public let reason: String?
    /// Whether the other side closed it.
    public let isByPeer: Bool

    /// A stream was closed with this code.
    public init(_ code: StreamCloseCode, reason: String? = nil, isByPeer: Bool = true) {
        self.code = code
        self.reason = reason
        self.isByPeer = isByPeer
    }

    public var description: String {
        let who = isByPeer ? "The other side" : "This side"
        let words = reason.map { " (\($0))" } ?? ""
        return "\(who) closed the stream with code \(code)\(words); schedule the request again for a new one."
    }
    public var errorDescription: String? { description }
}
