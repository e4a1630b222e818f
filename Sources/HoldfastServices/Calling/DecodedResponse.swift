// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// The result of a typed call together with the response it was decoded from.
public struct DecodedResponse<Value: Sendable>: Sendable {
    /// The result.
    public let value: Value
    /// The response, content included: `source`, `attempts` and `cacheDecision` say how the call went.
    public let response: Response
    /// The request as it was last sent.
    public let urlRequest: URLRequest

    /// Creates a result with the response it came from.
    public init(value: Value, response: Response, urlRequest: URLRequest) {
        self.value = value
        self.response = response
        self.urlRequest = urlRequest
    }
}
