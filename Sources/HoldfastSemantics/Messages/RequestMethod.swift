// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The method of a request: a case-sensitive token (RFC 9110 §9.1).
public struct RequestMethod: RawRepresentable, Sendable, Hashable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    /// The method's text exactly as it is sent.
    public let rawValue: String

    /// Carries any text, valid or not; methods from outside go through ``init(validating:)``.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Creates a method from a literal.
    public init(stringLiteral value: String) {
        rawValue = value
    }

    /// Creates a method from text out of a message.
    ///
    /// - Parameter text: the token; nil when it is none (RFC 9110 §9.1).
    public init?(validating text: String) {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isTokenCharacter) else { return nil }
        rawValue = text
    }

    /// The method's text.
    public var description: String { rawValue }

    /// `GET`.
    public static let get: RequestMethod = "GET"
    /// `HEAD`.
    public static let head: RequestMethod = "HEAD"
    /// `POST`.
    public static let post: RequestMethod = "POST"
    /// `PUT`.
    public static let put: RequestMethod = "PUT"
    /// `DELETE`.
    public static let delete: RequestMethod = "DELETE"
    /// `PATCH`.
    public static let patch: RequestMethod = "PATCH"
    /// `OPTIONS`.
    public static let options: RequestMethod = "OPTIONS"
    /// `TRACE`.
    public static let trace: RequestMethod = "TRACE"
    /// `CONNECT`.
    public static let connect: RequestMethod = "CONNECT"
    /// `QUERY`: a safe request whose content says what is asked (RFC 10008).
    public static let query: RequestMethod = "QUERY"

    /// Whether the method asks for no change; unknown methods count as unsafe (RFC 9110 §9.2.1, RFC 9111 §4.4).
    ///
    /// Beside HTTP's own the registry knows QUERY, PROPFIND (RFC 4918), REPORT (RFC 3253) and SEARCH (RFC 5323) as safe.
    public var isSafe: Bool {
        switch rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH": true
        default: false
        }
    }

    /// Whether sending it twice means the same as once; unknown methods count as not (RFC 9110 §9.2.2).
    public var isIdempotent: Bool {
        isSafe || rawValue == "PUT" || rawValue == "DELETE"
    }
}
