// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// JSON as all typed clients write and read it, unless they are told otherwise.
///
/// Dates are milliseconds since the beginning of 1970, both ways. Keys are written in order, so that equal values are equal bytes in
/// every process; a `Set` has no order and should not be a part of what is cached by its content.
public enum ServiceJSON {
    /// An encoder.
    ///
    /// A date that stands on a whole millisecond is written as a whole number, one between two keeps its fraction.
    ///
    /// - Parameter keys: how keys are written; as they are named by default.
    public static func encoder(keys: JSONEncoder.KeyEncodingStrategy = .useDefaultKeys) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.keyEncodingStrategy = keys
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            if let whole = wholeMilliseconds(date) {
                try container.encode(whole)
            } else {
                try container.encode(date.timeIntervalSince1970 * 1000)
            }
        }
        return encoder
    }

    /// A decoder.
    ///
    /// - Parameter keys: how keys are read; as they are named by default.
    public static func decoder(keys: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys) -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = keys
        decoder.dateDecodingStrategy = .millisecondsSince1970
        return decoder
    }

    /// Decodes content; empty content is nil where `T` is an Optional.
    static func decode<T: Decodable>(
        _ type: T.Type,
        from content: Data,
        by decoder: JSONDecoder = ServiceJSON.decoder()
    ) throws -> T {
        let isNil = content.isEmpty && T.self is any ExpressibleByNilLiteral.Type
        return try decoder.decode(type, from: isNil ? Data("null".utf8) : content)
    }

    /// The whole number of milliseconds that a date is as near to as a date can be; nil where it lies between two.
    ///
    /// A Date counts seconds from 2001 in binary, so 1.234 s after 1970 lies some billionths off, and would be sent as
    /// 1233.9999675750732.
    private static func wholeMilliseconds(_ date: Date) -> Int64? {
        let milliseconds = date.timeIntervalSince1970 * 1000
        let rounded = milliseconds.rounded()
        let precision = date.timeIntervalSinceReferenceDate.ulp * 1000 + milliseconds.ulp
        guard abs(milliseconds - rounded) <= precision else { return nil }
        return Int64(exactly: rounded)
    }
}
