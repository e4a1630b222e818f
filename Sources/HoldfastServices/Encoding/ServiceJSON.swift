// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// JSON as all typed clients write and read it by default.
///
/// Dates are milliseconds since 1970, both ways. Keys are sorted, so that equal values give equal bytes in every process. A
/// `Set` has no order, so do not use one in content that is part of a cache key.
public enum ServiceJSON {
    /// Creates an encoder.
    ///
    /// A date on a whole millisecond is written as a whole number; any other date keeps its fraction.
    ///
    /// - Parameter keys: how keys are written; unchanged by default.
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

    /// Creates a decoder.
    ///
    /// - Parameter keys: how keys are read; unchanged by default.
    public static func decoder(keys: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys) -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = keys
        decoder.dateDecodingStrategy = .millisecondsSince1970
        return decoder
    }

    /// Decodes content; empty content is nil if `T` is an Optional.
    static func decode<T: Decodable>(
        _ type: T.Type,
        from content: Data,
        by decoder: JSONDecoder = ServiceJSON.decoder()
    ) throws -> T {
        let isNil = content.isEmpty && T.self is any ExpressibleByNilLiteral.Type
        return try decoder.decode(type, from: isNil ? Data("null".utf8) : content)
    }

    /// The whole number of milliseconds that a date stands for, within the precision of dates; nil if it is between two.
    ///
    /// A Date counts seconds from 2001 in binary, so 1.234 s after 1970 is some billionths off, and would be sent as
    /// 1233.9999675750732.
    private static func wholeMilliseconds(_ date: Date) -> Int64? {
        let milliseconds = date.timeIntervalSince1970 * 1000
        let rounded = milliseconds.rounded()
        let precision = date.timeIntervalSinceReferenceDate.ulp * 1000 + milliseconds.ulp
        guard abs(milliseconds - rounded) <= precision else { return nil }
        return Int64(exactly: rounded)
    }
}
