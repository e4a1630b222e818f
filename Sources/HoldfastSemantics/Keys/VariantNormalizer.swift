// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Folds spellings of a request field that mean the same, so that they share one variant (RFC 9111 §4.1).
///
/// Only fields whose syntax is known, and only where the RFC calls the spellings equal; what does not parse stays as it
/// is. Merging too much would serve the wrong variant, merging too little only costs a hit.
enum VariantNormalizer {
    static func normalized(_ value: String, of name: String) -> String {
        switch name {
        case "accept": weightedList(value, member: mediaRange) ?? value
        case "accept-encoding": weightedList(value, member: coding) ?? value
        case "accept-language": languages(value)
        case "authorization": credentials(value)
        default: value
        }
    }

    /// Members without order, each with its weight in thousandths unless that is 1 (RFC 9110 §12.4.2).
    private static func weightedList(_ value: String, member: (inout [String]) -> String?) -> String? {
        if isPlainToken(value) { return value }
        var members: Set<String> = []
        for text in FieldScanner.members(of: value) {
            var pieces = FieldScanner.members(of: text, separator: UInt8(ascii: ";"))
            var weight = 1000
            if let index = pieces.firstIndex(where: { $0.utf8.count >= 2 && $0.loweringASCII().hasPrefix("q=") }) {
                guard let parsed = thousandths(pieces[index].utf8.dropFirst(2)) else { return nil }
                weight = parsed
                pieces.remove(at: index)
            }
            guard !pieces.isEmpty, let head = member(&pieces) else { return nil }
            let parameters = pieces.dropFirst().map { ";" + $0 }.joined()
            members.insert(head + parameters + (weight == 1000 ? "" : ";q=\(weight)"))
        }
        return members.sorted().joined(separator: ",")
    }

    /// One lower-case word without weight or alias is its own normal form; most requests that vary send that.
    private static func isPlainToken(_ value: String) -> Bool {
        guard let first = value.utf8.first, first != UInt8(ascii: "x") else { return false }
        return value.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "/") || (byte.isTokenCharacter && !byte.isUpperCaseLetter)
        }
    }

    private static func coding(_ pieces: inout [String]) -> String? {
        guard pieces.count == 1 else { return nil }
        let name = pieces[0].loweringASCII()
        guard name.utf8.allSatisfy(\.isTokenCharacter) else { return nil }
        // RFC 9110 §8.4.1.1 and §8.4.1.3 make these two pairs equal.
        return switch name {
        case "x-gzip": "gzip"
        case "x-compress": "compress"
        default: name
        }
    }

    private static func mediaRange(_ pieces: inout [String]) -> String? {
        for index in pieces.indices.dropFirst() {
            let parts = pieces[index].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, parts.count == 2 else { return nil }
            pieces[index] = String(name).loweringASCII() + "=" + parts[1]
        }
        return pieces[0].loweringASCII()
    }

    /// Letter case and white space only: some servers read the order as a preference (RFC 9110 §12.5.4).
    private static func languages(_ value: String) -> String {
        FieldScanner.members(of: value)
            .map { member in
                FieldScanner.members(of: member, separator: UInt8(ascii: ";")).joined(separator: ";").loweringASCII()
            }
            .joined(separator: ",")
    }

    /// The languages with their weights, whose order the RFC gives no meaning (RFC 9110 §12.5.4); nil for anything else.
    ///
    /// Not part of the normal form, as some servers do read an order of preference from it.
    static func unorderedLanguages(_ value: String) -> String? {
        weightedList(value) { $0.count == 1 ? $0[0].loweringASCII() : nil }
    }

    /// The value without white space around commas, which no list has a use for (RFC 9110 §5.6.1); quoted strings stay as they are.
    static func withoutListSpace(_ value: String) -> String {
        guard value.utf8.contains(UInt8(ascii: ",")) else { return value }
        var result: [UInt8] = []
        result.reserveCapacity(value.utf8.count)
        var isQuoted = false
        var isEscaped = false
        var isAfterComma = false
        for byte in value.utf8 {
            if isQuoted {
                if !isEscaped, byte == UInt8(ascii: "\"") { isQuoted = false }
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                result.append(byte)
                continue
            }
            if isAfterComma, byte.isOptionalWhitespace { continue }
            isAfterComma = byte == UInt8(ascii: ",")
            if isAfterComma { while let last = result.last, last.isOptionalWhitespace { result.removeLast() } }
            isQuoted = byte == UInt8(ascii: "\"")
            result.append(byte)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The scheme is case-insensitive, what follows it is not (RFC 9110 §11.1).
    private static func credentials(_ value: String) -> String {
        guard let space = value.firstIndex(of: " ") else { return value }
        return String(value[..<space]).loweringASCII() + String(value[space...])
    }

    /// qvalue of RFC 9110 §12.4.2: 0 or 1 with up to three decimals.
    static func thousandths(_ text: Substring.UTF8View) -> Int? {
        let bytes = Array(text)
        guard let whole = bytes.first, whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1") else { return nil }
        var value = Int(whole - UInt8(ascii: "0")) * 1000
        guard bytes.count > 1 else { return value }
        guard bytes[1] == UInt8(ascii: "."), bytes.count <= 5 else { return nil }
        var unit = 100
        for byte in bytes.dropFirst(2) {
            guard byte.isDigit else { return nil }
            value += Int(byte - UInt8(ascii: "0")) * unit
            unit /= 10
        }
        return value <= 1000 ? value : nil
    }
}
