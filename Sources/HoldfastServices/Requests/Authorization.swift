// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastSemantics

/// A credential that a service puts into the requests that want one.
public struct Authorization: Sendable, Hashable {
    /// The field it stands in and the field's value; nil where there is no credential.
    public let line: HeaderFields.Line?

    /// No credential.
    public static let none = Authorization(line: nil)

    /// A name and a password (RFC 7617), encoded as UTF-8. The name has no colon: a server would read it as the name's end.
    public static func basic(_ user: String, _ password: String) -> Authorization {
        let encoded = Data("\(user):\(password)".utf8).base64EncodedString()
        return Authorization(line: HeaderFields.Line(name: .authorization, value: "Basic \(encoded)"))
    }

    /// A bearer token (RFC 6750 §2.1); an empty one is no credential.
    public static func bearer(_ token: String) -> Authorization {
        if token.isEmpty { return .none }
        return Authorization(line: HeaderFields.Line(name: .authorization, value: "Bearer \(token)"))
    }

    /// A field of one's own, such as `X-API-Key`. Like any credential it names the cache partition and stays behind when a
    /// redirect leaves the origin. An empty value is no credential.
    public static func custom(key: FieldName, value: String) -> Authorization {
        value.isEmpty ? .none : Authorization(line: HeaderFields.Line(name: key, value: value))
    }
}

/// Whether a request bears its service's credential; closed.
public enum AuthorizationRequirement: Sendable, Hashable {
    /// Never, even where the service has one; an Authorization field in the service's headers stays behind too.
    case none
    /// Where the service has one.
    case optional
    /// Always: where there is none, the call fails before anything is sent.
    case required
}
