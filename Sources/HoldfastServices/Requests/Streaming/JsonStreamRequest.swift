// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A stream of JSON: each message is one document, sent as text and received as text or bytes.
public protocol JsonStreamRequest: StreamRequest where Message: Encodable, Result: Decodable {
    /// Encodes messages that are sent; by default keys in camelCase become snake_case.
    var encoder: JSONEncoder { get }
    /// Decodes received messages; by default keys in snake_case become camelCase.
    var decoder: JSONDecoder { get }
}

extension JsonStreamRequest {
    public var encoder: JSONEncoder {
        ServiceJSON.encoder(keys: .convertToSnakeCase)
    }

    public var decoder: JSONDecoder {
        ServiceJSON.decoder(keys: .convertFromSnakeCase)
    }

    public func encode(_ message: Message) throws -> StreamMessage {
        .text(String(decoding: try encoder.encode(message), as: UTF8.self))
    }

    public func decode(_ message: StreamMessage) throws -> Result {
        try decoder.decode(Result.self, from: message.data)
    }
}
