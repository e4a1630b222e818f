// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The text of values without parts.
enum KeyValueScalar {
    /// The value has no text.
    struct NoText: Error {}

    /// The seconds since 1970 of the years 1 to 9999.
    static let calendarYears = -62_135_596_800.0..<253_402_300_800.0

    /// A number as in JSON: whole ones without a point, and the shortest text that reads back as the same number.
    static func text(of number: Double) throws -> String {
        guard number.isFinite else { throw NoText() }
        return trimmed(number.description)
    }

    static func text(of number: Float) throws -> String {
        guard number.isFinite else { throw NoText() }
        return trimmed(number.description)
    }

    /// The text of Foundation types that encode themselves as something forms do not have; nil for any other type.
    static func text(of value: Any, by encoder: KeyValueEncoder) throws -> String? {
        switch value {
        case let date as Date: try encoder.dates.text?(date)
        case let data as Data: data.base64EncodedString()
        case let url as URL: url.absoluteString
        case let uuid as UUID: uuid.uuidString
        case let decimal as Decimal: try text(of: decimal)
        default: nil
        }
    }

    private static func text(of decimal: Decimal) throws -> String {
        guard decimal.isFinite else { throw NoText() }
        return decimal.description
    }

    private static func trimmed(_ text: String) -> String {
        text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
