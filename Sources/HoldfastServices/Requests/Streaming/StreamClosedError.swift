// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// Why a stream was closed, as one side tells the other (RFC 6455 §7.4).
public struct StreamCloseCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt16

    /// Carries any number.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

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
