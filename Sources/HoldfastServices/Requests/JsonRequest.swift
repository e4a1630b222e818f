// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A request whose response is JSON.
///
/// Where ``Request/Result`` is an Optional, a response without content is nil.
public protocol JsonRequest: Request where Result: Decodable {
    /// Decodes the response; by default keys in snake_case become camelCase.
    var decoder: JSONDecoder { get }
}

extension JsonRequest {
    public var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }

    public func decode(_ data: Data) throws -> Result {
        guard data.isEmpty, Result.self is any ExpressibleByNilLiteral.Type else {
            return try decoder.decode(Result.self, from: data)
        }
        return try decoder.decode(Result.self, from: Data("null".utf8))
    }
}
