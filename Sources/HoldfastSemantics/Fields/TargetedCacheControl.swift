// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The targeted field that a cache uses instead of Cache-Control and Expires (RFC 9213).
///
/// If there is one, only ``cacheControl`` applies: Cache-Control, Expires and Pragma of the response must be ignored (RFC 9213
/// §2.2). The fields themselves stay in the response and are passed on.
package struct TargetedCacheControl: Sendable, Hashable {
    /// The field that was selected.
    package let field: FieldName

    /// Its directives, in the same form as those of Cache-Control.
    package let cacheControl: CacheControl

    /// Selects one of a response's fields (RFC 9213 §2.2); linear time for each target.
    ///
    /// The first target that is present, a valid Dictionary (RFC 9651 §3.2) and not empty is used, even if none of its directives
    /// is known. Parameters are ignored, and so is a directive whose value has the wrong type: seconds must be an Integer (a
    /// negative one means stale), flags must be true, and `no-cache` and `private` must be true or a String or Token of field
    /// names. Unknown directives are kept. Directive names are case-insensitive, as in Cache-Control, although a Dictionary's keys
    /// are lower case: `Max-Age` can only have one meaning.
    ///
    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - targets: the cache's target list, the most specific first, such as `[.cdnCacheControl]`; nil is returned for an empty
    ///     list.
    package init?(_ fields: HeaderFields, targets: [FieldName]) {
        for target in targets {
            guard let value = fields[target],
                let dictionary = try? StructuredDictionary(parsing: TargetedCacheControl.folded(value)),
                !dictionary.isEmpty
            else { continue }
            field = target
            cacheControl = CacheControl(directives: dictionary.compactMap(TargetedCacheControl.directive))
            return
        }
        return nil
    }

    /// The value with everything outside its strings lowercased.
    private static func folded(_ value: String) -> String {
        var isInString = false
        var isEscaped = false
        var folded: [UInt8] = []
        folded.reserveCapacity(value.utf8.count)
        for byte in value.utf8 {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if isInString, byte == UInt8(ascii: "\\") {
                isEscaped = true
            }
            let isUpper = !isInString && (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            folded.append(isUpper ? byte | 0x20 : byte)
        }
        return String(decoding: folded, as: UTF8.self)
    }

    private static func directive(_ name: String, member: StructuredMember) -> CacheControl.Directive? {
        guard let value = member.item?.value else { return nil }
        switch (kind(of: name), value) {
        case (.flag, .boolean(true)), (.fieldNames, .boolean(true)), (.unknown, .boolean(true)):
            return CacheControl.Directive(name: name)
        case (.seconds, .integer(let seconds)), (.unknown, .integer(let seconds)):
            return CacheControl.Directive(name: name, argument: String(seconds))
        case (.fieldNames, .string(let text)), (.fieldNames, .token(let text)), (.unknown, .string(let text)),
            (.unknown, .token(let text)):
            return CacheControl.Directive(name: name, argument: text)
        default:
            return nil
        }
    }

    private enum Kind {
        case flag
        case seconds
        case fieldNames
        case unknown
    }

    /// The type that RFC 9213 §2.1 defines for a directive of a response.
    private static func kind(of name: String) -> Kind {
        switch name {
        case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error": .seconds
        case "no-cache", "private": .fieldNames
        case "no-store", "no-transform", "must-revalidate", "must-understand", "proxy-revalidate", "public",
            "immutable":
            .flag
        default: .unknown
        }
    }
}

/// The fields of a response that a cache obeys: Cache-Control and Expires, or only a targeted field (RFC 9213 §2.2).
package struct RulingCacheControl {
    /// The directives to obey.
    package let cacheControl: CacheControl

    /// Whether Expires applies: it is present, and no targeted field replaces it.
    let hasExpires: Bool

    /// Whether they state a lifetime.
    var statesFreshness: Bool { cacheControl.maxAge != nil || cacheControl.sMaxAge != nil || hasExpires }

    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - targets: the cache's target list; without one this is Cache-Control.
    package init(_ fields: HeaderFields, targets: [FieldName]) {
        if !targets.isEmpty, let targeted = TargetedCacheControl(fields, targets: targets) {
            cacheControl = targeted.cacheControl
            hasExpires = false
        } else {
            cacheControl = CacheControl(fields)
            hasExpires = fields.contains(.expires)
        }
    }
}
