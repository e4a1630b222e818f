// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the content of a failed call's response is decoded to.
public protocol AnyErrorResponse: Decodable, Sendable {
    /// What the server says, for people.
    var message: String { get }
    /// Whether the message is for developers rather than for users; false by default.
    var isInternal: Bool { get }
}

extension AnyErrorResponse {
    public var isInternal: Bool { false }
}

/// Says that the responses of a service to failed calls have nothing in common: their content is not read.
public struct NoErrorResponse: AnyErrorResponse {
    public var message: String { "" }
}

/// Says that the responses of a service have nothing in common: their content is read once, as the endpoint's output.
public struct NoBasicResponse: Decodable, Sendable {}
