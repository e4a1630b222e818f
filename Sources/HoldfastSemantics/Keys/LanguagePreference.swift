// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What an Accept-Language value prefers (RFC 9110 §12.5.4).
enum LanguagePreference {
    /// Whether one language is preferred before all others, and is the language of a response.
    ///
    /// Deliberately narrow, since a match serves one request what was selected for another: the greatest weight belongs to a
    /// single range, which names the response's only language exactly. Whoever selects by this field at all would select
    /// that language again, for there is a representation in it (RFC 9111 §4.1).
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

    /// The weight in thousandths, 1000 where there is none; nil for anything but one weight.
    private static func weight(_ pieces: [String]) -> Int? {
        guard pieces.count > 1 else { return 1000 }
        guard pieces.count == 2, pieces[1].loweringASCII().hasPrefix("q=") else { return nil }
        return VariantNormalizer.thousandths(pieces[1].utf8.dropFirst(2))
    }
}
