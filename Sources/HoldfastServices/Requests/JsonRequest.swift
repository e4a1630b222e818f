// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A request whose response is JSON.
///
/// If ``Request/Result`` is an Optional, a response without content is nil.
public protocol JsonRequest: Request where Result: Decodable {
    /// Decodes the response; by default that of ``ServiceJSON``, with keys converted from snake_case to camelCase.
    var decoder: JSONDecoder { get }
}

extension JsonRequest {
    public var decoder: JSONDecoder {
        ServiceJSON.decoder(keys: .convertFromSnakeCase)
    }

    public func decode(_ data: Data) throws -> Result {
        try ServiceJSON.decode(Result.self, from: data, by: decoder)
    }
}
