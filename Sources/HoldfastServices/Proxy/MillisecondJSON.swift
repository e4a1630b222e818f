// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// JSON whose dates are milliseconds since the beginning of 1970.
enum MillisecondJSON {
    /// Keys are sorted, so that equal values are equal bytes in every process.
    static func encode<B: Encodable>(_ value: B) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            if let whole = wholeMilliseconds(date) {
                try container.encode(whole)
            } else {
                try container.encode(date.timeIntervalSince1970 * 1000)
            }
        }
        return try encoder.encode(value)
    }

    /// Empty content is nil where `T` is an Optional.
    static func decode<T: Decodable>(_ type: T.Type, from content: Data) throws -> T {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .millisecondsSince1970
        let isNil = content.isEmpty && T.self is any ExpressibleByAbsence.Type
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

private protocol ExpressibleByAbsence {}

extension Optional: ExpressibleByAbsence {}
