// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Normalizes values of a request field that mean the same, so that they share one variant (RFC 9111 §4.1).
///
/// It handles only fields with known syntax, and only if the RFC says that the values are equal; a value that does not parse stays
/// as it is. Merging too much would serve the wrong variant; merging too little only costs a hit.
enum VariantNormalizer {
    static func normalized(_ value: String, of name: String) -> String {
        switch name {
        case "accept": weightedList(value, member: mediaRange) ?? value
        case "accept-encoding": wordList(value) ?? weightedList(value, member: coding) ?? value
        case "accept-language": languages(value) ?? value
        case "authorization": credentials(value)
        default: value
        }
    }

    /// Members in normalized order, each with its weight unless that is 1 (RFC 9110 §12.4.2).
    ///
    /// A weight is found anywhere among the parameters, as RFC 9110 §12.5.1 asks of recipients. A member with two weights is
    /// ambiguous, so such a list stays as it is.
    private static func weightedList(_ value: String, member: ([String]) -> String?) -> String? {
        if isPlainToken(value) { return value }
        guard value.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        var weights: [String: Int] = [:]
        for text in FieldScanner.members(of: value) {
            var pieces = FieldScanner.members(of: text, separator: UInt8(ascii: ";"))
            var weight = 1000
            // A text that begins with a semicolon names no member.
            guard text.utf8.first != UInt8(ascii: ";") else { return nil }
            if let index = pieces.indices.dropFirst().first(where: { isWeight(pieces[$0]) }) {
                guard let parsed = thousandths(pieces[index].utf8.dropFirst(2)) else { return nil }
                weight = parsed
                pieces.remove(at: index)
            }
            guard !pieces.contains(where: isWeight), let head = member(pieces),
                weights.updateValue(weight, forKey: head) ?? weight == weight
            else { return nil }
        }
        return weights.map { $0.value == 1000 ? $0.key : $0.key + ";q=" + decimal($0.value) }
            .sorted().joined(separator: ",")
    }

    /// Lower-case words without weights or aliases, unique and sorted, as ``weightedList(_:member:)`` would write them; nil for
    /// anything else. Most requests list their codings like this, and each lookup reads that list.
    private static func wordList(_ value: String) -> String? {
        var value = value
        return value.withUTF8 { bytes -> String? in
            var words: [Slice<UnsafeBufferPointer<UInt8>>] = []
            for piece in bytes.split(separator: UInt8(ascii: ",")) {
                var word = piece
                while let last = word.last, last.isOptionalWhitespace { word.removeLast() }
                word = word.drop(while: \.isOptionalWhitespace)
                guard let first = word.first else { continue }
                guard first != UInt8(ascii: "x"), word.allSatisfy({ $0.isTokenCharacter && !$0.isUpperCaseLetter })
                else {
                    return nil
                }
                words.append(word)
            }
            words.sort { $0.lexicographicallyPrecedes($1) }
            var folded: [UInt8] = []
            folded.reserveCapacity(bytes.count)
            for (index, word) in words.enumerated() where index == 0 || !word.elementsEqual(words[index - 1]) {
                if index > 0 { folded.append(UInt8(ascii: ",")) }
                folded.append(contentsOf: word)
            }
            return String(decoding: folded, as: UTF8.self)
        }
    }

    private static func isWeight(_ piece: String) -> Bool {
        var bytes = piece.utf8.makeIterator()
        return bytes.next()?.lowerCased == UInt8(ascii: "q") && bytes.next() == UInt8(ascii: "=")
    }

    /// One lower-case word without weight or alias is already normalized; most requests that vary send that.
    private static func isPlainToken(_ value: String) -> Bool {
        guard let first = value.utf8.first, first != UInt8(ascii: "x") else { return false }
        return value.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "/") || (byte.isTokenCharacter && !byte.isUpperCaseLetter)
        }
    }

    private static func coding(_ pieces: [String]) -> String? {
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

    /// A media range has the syntax of a media type, `*` being a token (RFC 9110 §12.5.1).
    private static func mediaRange(_ pieces: [String]) -> String? {
        CanonicalContentType(parsing: pieces.joined(separator: ";"))?.text
    }

    /// Only case and whitespace: some servers read the order as a preference (RFC 9110 §12.5.4).
    private static func languages(_ value: String) -> String? {
        var members: [String] = []
        for text in FieldScanner.members(of: value) {
            let pieces = FieldScanner.members(of: text, separator: UInt8(ascii: ";"))
            guard text.utf8.first != UInt8(ascii: ";"), pieces.count <= 2, pieces.dropFirst().allSatisfy(isWeight),
                let range = pieces.first, range.utf8.allSatisfy(\.isTokenCharacter)
            else { return nil }
            members.append(pieces.joined(separator: ";").loweringASCII())
        }
        return members.joined(separator: ",")
    }

    /// The languages with their weights, ignoring their order, which the RFC gives no meaning (RFC 9110 §12.5.4); nil for anything
    /// else.
    ///
    /// Not part of the normal form, because some servers do read the order as a preference.
    static func unorderedLanguages(_ value: String) -> String? {
        weightedList(value) { $0.count == 1 ? $0[0].loweringASCII() : nil }
    }

    /// The value without whitespace around commas, which has no meaning in a list (RFC 9110 §5.6.1); quoted strings stay as they
    /// are.
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

    /// The scheme is case-insensitive, the rest is not (RFC 9110 §11.1). A single word may be a secret without a scheme, and stays
    /// as it is.
    private static func credentials(_ value: String) -> String {
        guard let space = value.utf8.firstIndex(of: UInt8(ascii: " ")) else { return value }
        let scheme = value.utf8[..<space]
        guard scheme.allSatisfy(\.isTokenCharacter) else { return value }
        return String(decoding: scheme, as: UTF8.self).loweringASCII()
            + String(decoding: value.utf8[space...], as: UTF8.self)
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

    /// The shortest qvalue that reads as the same weight.
    private static func decimal(_ thousandths: Int) -> String {
        guard thousandths > 0 else { return "0" }
        var digits = Array(String(1000 + thousandths).utf8.dropFirst())
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        return "0." + String(decoding: digits, as: UTF8.self)
    }
}

/// What an Accept-Language value prefers (RFC 9110 §12.5.4).
enum LanguagePreference {
    /// Whether one language is preferred over all others, and is the language of a response.
    ///
    /// Deliberately narrow, since a match serves one request what was selected for another: the highest weight must belong to a
    /// single range, which must equal the response's only language. A server that selects by this field would select that language
    /// again, since it has a representation in it (RFC 9111 §4.1).
    ///
    /// - Parameters:
    ///   - contentLanguage: the response's combined Content-Language.
    ///   - acceptLanguage: the request's combined Accept-Language; linear time.
    static func isFirst(_ contentLanguage: String, in acceptLanguage: String) -> Bool {
        let languages = FieldScanner.members(of: contentLanguage)
        guard let language = languages.first, languages.count == 1 else { return false }
        var first: (range: String, weight: Int)?
        var isShared = false
        for member in FieldScanner.members(of: acceptLanguage) {
            let pieces = FieldScanner.members(of: member, separator: UInt8(ascii: ";"))
            guard let range = pieces.first, let weight = weight(pieces) else { return false }
            if let known = first, known.weight >= weight {
                if known.weight == weight { isShared = true }
            } else {
                first = (range, weight)
                isShared = false
            }
        }
        guard let first, !isShared, first.weight > 0 else { return false }
        return first.range.loweringASCII() == language.loweringASCII()
    }

    /// The weight in thousandths, 1000 if there is none; nil for anything but one weight.
    private static func weight(_ pieces: [String]) -> Int? {
        guard pieces.count > 1 else { return 1000 }
        guard pieces.count == 2, pieces[1].loweringASCII().hasPrefix("q=") else { return nil }
        return VariantNormalizer.thousandths(pieces[1].utf8.dropFirst(2))
    }
}
