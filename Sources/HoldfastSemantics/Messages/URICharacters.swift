// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A set of ASCII characters as 128 bits: the character classes of RFC 3986.
struct URICharacters: Sendable {
    private let low: UInt64
    private let high: UInt64

    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    init(_ characters: String) {
        var low: UInt64 = 0
        var high: UInt64 = 0
        for byte in characters.utf8 where byte < 128 {
            if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
        }
        self.init(low: low, high: high)
    }

    func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<64: low & (1 << UInt64(byte)) != 0
        case 64..<128: high & (1 << UInt64(byte - 64)) != 0
        default: false
        }
    }

    private func union(_ characters: String) -> URICharacters {
        let other = URICharacters(characters)
        return URICharacters(low: low | other.low, high: high | other.high)
    }

    static let unreserved = URICharacters("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    /// reg-name without its escapes.
    static let hostCharacters = unreserved.union("!$&'()*+,;=")
    static let userinfoCharacters = hostCharacters.union(":")
    /// pchar without its escapes, and the slash.
    static let pathCharacters = userinfoCharacters.union("@/")
    /// Both query and fragment.
    static let queryCharacters = pathCharacters.union("?")
    /// The printable ASCII characters that stand nowhere in a URI; mapping encodes them (RFC 3987 §3.1).
    static let mappable = URICharacters(" \"<>\\^`{|}")
}

/// The address in brackets: IPv6 or a later version (RFC 3986 §3.2.2).
enum IPLiteral {
    static func isValid(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first else { return false }
        return first.lowerCased == UInt8(ascii: "v") ? isFutureAddress(text.dropFirst()) : isIPv6Address(text)
    }

    private static func isFutureAddress(_ text: ArraySlice<UInt8>) -> Bool {
        guard let dot = text.firstIndex(of: UInt8(ascii: ".")) else { return false }
        let version = text[..<dot]
        let address = text[(dot + 1)...]
        return !version.isEmpty && version.allSatisfy { $0.hexValue != nil } && !address.isEmpty
            && address.allSatisfy(URICharacters.userinfoCharacters.contains)
    }

    private static func isIPv6Address(_ text: ArraySlice<UInt8>) -> Bool {
        // The longest spelling has 45 bytes; the bound also keeps the splitting below cheap.
        guard text.count <= 45 else { return false }
        let colon = UInt8(ascii: ":")
        guard let gap = text.indices.first(where: { text[$0...].starts(with: [colon, colon]) }) else {
            return groupCount(text) == 8
        }
        let left = text[..<gap]
        let right = text[(gap + 2)...]
        guard let before = left.isEmpty ? 0 : groupCount(left, allowsIPv4: false),
            let after = right.isEmpty ? 0 : groupCount(right)
        else { return false }
        return before + after <= 7
    }

    /// The number of 16-bit groups between single colons, nil where one is malformed.
    private static func groupCount(_ text: ArraySlice<UInt8>, allowsIPv4: Bool = true) -> Int? {
        let pieces = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var groups = 0
        for (index, piece) in pieces.enumerated() {
            if allowsIPv4, index == pieces.count - 1, isIPv4Address(piece) {
                groups += 2
            } else {
                guard !piece.isEmpty, piece.count <= 4, piece.allSatisfy({ $0.hexValue != nil }) else { return nil }
                groups += 1
            }
        }
        return groups
    }

    private static func isIPv4Address(_ text: ArraySlice<UInt8>) -> Bool {
        let octets = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return octets.count == 4
            && octets.allSatisfy { octet in
                guard let value = FieldScanner.number(octet, limit: 1000) else { return false }
                return value <= 255 && (octet.count == 1 || octet.first != UInt8(ascii: "0"))
            }
    }
}

extension UInt8 {
    var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    var upperCased: UInt8 {
        self >= UInt8(ascii: "a") && self <= UInt8(ascii: "z") ? self & 0xDF : self
    }
}
