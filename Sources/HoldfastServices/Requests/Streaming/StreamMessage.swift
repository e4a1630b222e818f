// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

/// One complete message of a stream; closed, because WebSocket has these two kinds (RFC 6455 §5.6).
public enum StreamMessage: Sendable, Hashable {
    /// Text, sent as UTF-8.
    case text(String)
    /// Bytes.
    case binary(Data)

    /// The length in bytes.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }

    /// The bytes; for a text, its UTF-8.
    public var data: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }

    /// The text.
    ///
    /// - Throws: `ServiceError` `.decodingFailed` for bytes that are not UTF-8.
    public func string() throws -> String {
        switch self {
        case .text(let text): return text
        case .binary(let data):
            guard let text = String(data: data, encoding: .utf8) else {
                throw ServiceError(.decodingFailed, "The message is not UTF-8; decode it as Data.")
            }
            return text
        }
    }
}
