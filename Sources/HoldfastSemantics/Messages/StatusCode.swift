// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The status code of a response (RFC 9110 §15).
///
/// Numbers outside 100 to 599 are carried as they came, so that nothing is lost; ``isValid`` tells them apart.
public struct StatusCode: RawRepresentable, Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral,
    CustomStringConvertible
{
    /// The number.
    public let rawValue: Int

    /// Carries any number.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Carries any number.
    public init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Carries any number.
    public init(integerLiteral value: Int) {
        rawValue = value
    }

    /// The number as text.
    public var description: String { String(rawValue) }

    /// Whether the number is within 100 to 599.
    public var isValid: Bool { rawValue >= 100 && rawValue <= 599 }

    /// 1xx: an interim response.
    public var isInformational: Bool { rawValue >= 100 && rawValue <= 199 }

    /// 2xx.
    public var isSuccessful: Bool { rawValue >= 200 && rawValue <= 299 }

    /// 3xx.
    public var isRedirection: Bool { rawValue >= 300 && rawValue <= 399 }

    /// 4xx.
    public var isClientError: Bool { rawValue >= 400 && rawValue <= 499 }

    /// 5xx.
    public var isServerError: Bool { rawValue >= 500 && rawValue <= 599 }

    /// 2xx to 5xx: the response that ends an exchange (RFC 9110 §15).
    public var isFinal: Bool { rawValue >= 200 && rawValue <= 599 }

    /// Whether a cache may guess a freshness lifetime for it (RFC 9110 §15.1).
    ///
    /// 206 is on the RFC's list but its parts are not whole responses; they are stored by other rules.
    public var isHeuristicallyCacheable: Bool {
        switch rawValue {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the left number is smaller.
    public static func < (left: StatusCode, right: StatusCode) -> Bool {
        left.rawValue < right.rawValue
    }
}
