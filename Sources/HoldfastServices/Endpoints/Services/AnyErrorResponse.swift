// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The type that the content of a failed call's response is decoded to.
public protocol AnyErrorResponse: Decodable, Sendable {
    /// The server's message for people.
    var message: String { get }
    /// Whether the message is for developers rather than for users; false by default.
    var isInternal: Bool { get }
}

extension AnyErrorResponse {
    public var isInternal: Bool { false }
}

/// Declares that responses to a service's failed calls have nothing in common; their content is not decoded.
public struct NoErrorResponse: AnyErrorResponse {
    public var message: String { "" }
}

/// Declares that a service's responses have nothing in common; their content is decoded once, as the endpoint's output.
public struct NoBasicResponse: Decodable, Sendable {}
