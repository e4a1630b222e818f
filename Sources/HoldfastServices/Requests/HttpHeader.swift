// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastSemantics

/// The header fields of a service or a request.
public typealias HttpHeader = HeaderFields

/// The method of a request.
public typealias HttpMethod = RequestMethod

extension HeaderFields {
    /// The fields of both; if both have a field (ignoring case), the right one's lines replace the left one's.
    public static func + (left: HeaderFields, right: HeaderFields) -> HeaderFields { left.merging(right) }
}

/// A credential that a service adds to its requests.
public struct Authorization: Sendable, Hashable {
    /// The credential's field and its value; nil if there is no credential.
    public let line: HeaderFields.Line?

    /// No credential.
    public static let none = Authorization(line: nil)

    /// A name and a password (RFC 7617), encoded as UTF-8. The name must not contain a colon: a server would take it as the end
    /// of the name.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        let encoded = Data("\(user):\(password)".utf8).base64EncodedString()
        return Authorization(line: HeaderFields.Line(name: .authorization, value: "Basic \(encoded)"))
    }

    /// A bearer token (RFC 6750 §2.1); an empty one counts as no credential.
    public static func bearer(_ token: String) -> Authorization {
        if token.isEmpty { return .none }
        return Authorization(line: HeaderFields.Line(name: .authorization, value: "Bearer \(token)"))
    }

    /// A custom field, such as `X-API-Key`. Like any credential, it determines the cache partition and is dropped when a
    /// redirect leaves the origin. An empty value counts as no credential.
    public static func custom(key: FieldName, value: String) -> Authorization {
        value.isEmpty ? .none : Authorization(line: HeaderFields.Line(name: key, value: value))
    }
}

/// Whether a request carries its service's credential; closed.
public enum AuthorizationRequirement: Sendable, Hashable {
    /// Never, even if the service has one; an Authorization field in the service's headers is left out too.
    case none
    /// If the service has one.
    case optional
    /// Always: if there is none, the call fails before anything is sent.
    case required
}
