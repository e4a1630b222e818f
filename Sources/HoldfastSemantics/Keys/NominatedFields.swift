// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The request values that a response's Vary nominates; they distinguish the variants of one URI (RFC 9111 §4.1).
///
/// Names are lower case, unique and sorted. Absent differs from empty. Credentials are stored only as keyed digests, so a stored
/// variant does not reveal them.
public struct NominatedFields: Sendable, Hashable {
    private struct Entry: Sendable, Hashable {
        var name: String
        /// UTF-8 bytes, because strings compare by Unicode equivalence and could match values that differ in bytes.
        var value: [UInt8]?
        /// Whether it is the digest of a credential that the call named as one; the usual ones are recognized by name.
        var isDigest = false
    }

    private let entries: [Entry]
    private let normalizes: Bool

    /// The values as the request had them, for ``matches(written:_:implicit:areCredentialsEqual:)``.
    package let written: [UInt8]

    /// The variant key: an empty array if the response does not vary.
    public let framed: [UInt8]

    /// Whether both have the same names and values; how a request wrote them makes no difference.
    public static func == (left: NominatedFields, right: NominatedFields) -> Bool { left.framed == right.framed }

    /// Feeds the names and values to the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(framed) }

    /// The nominated names in lower case, sorted; empty if the response does not vary.
    public var names: [String] { entries.map(\.name) }

    /// Creates the value for a response without Vary.
    public init() { self.init([], normalizes: true, written: []) }

    private init(_ entries: [Entry], normalizes: Bool, written: [UInt8]) {
        self.entries = entries
        self.normalizes = normalizes
        self.written = written
        framed = NominatedFields.framed(entries, normalizes: normalizes)
    }

    /// Takes the values that the response nominates from its request.
    ///
    /// - Parameters:
    ///   - vary: the response's fields.
    ///   - request: the fields of its request.
    ///   - secret: the key for the digests of credentials.
    ///   - normalizes: whether values with the same meaning are equal, for fields with known syntax; true by default. False
    ///     compares the texts, trimmed and with lines joined.
    ///   - credentialFields: fields in addition to Authorization, Cookie and Proxy-Authorization whose values are credentials; none
    ///     by default.
    /// - Returns: nil if Vary contains `*`, which matches nothing, or anything that is not a field name.
    public init?(
        vary: HeaderFields,
        request: HeaderFields,
        secret: [UInt8],
        normalizes: Bool = true,
        credentialFields: [FieldName] = []
    ) {
        guard let names = NominatedFields.names(vary: vary) else { return nil }
        let presented = PresentedValues(request, nameCount: names.count)
        let hidden = Set(credentialFields.map(\.canonicalName))
        let entries = names.map { name in
            var entry = Entry(name: name, isDigest: hidden.contains(name) && !NominatedFields.isCredential(name))
            entry.value = NominatedFields.value(of: entry, in: presented, secret: secret, normalizes: normalizes)
            if entry.value == nil { entry.isDigest = false }
            return entry
        }
        var frames = FramedBytes()
        for entry in entries {
            frames.append(entry.name)
            frames.append(NominatedFields.written(entry, in: presented))
        }
        self.init(entries, normalizes: normalizes, written: frames.bytes)
    }

    /// The names that Vary nominates, in lower case, unique and sorted; nil if a response with it answers no other request.
    static func names(vary: HeaderFields) -> [String]? {
        guard vary.contains(.vary) else { return [] }
        var names: [String] = []
        for value in vary.values(of: .vary) {
            for member in FieldScanner.members(of: value) {
                guard member != "*", let name = FieldName(member) else { return nil }
                names.append(name.canonicalName)
            }
        }
        return names.count < 2 ? names : Set(names).sorted()
    }

    /// Restores a value from its ``framed`` form.
    ///
    /// - Parameter framed: bytes from a store; an empty array means no Vary.
    /// - Returns: nil if they are malformed.
    public init?(framed: [UInt8]) { self.init(framed: framed, written: []) }

    /// - Parameter written: ``written``; empty if it is not known.
    package init?(framed: [UInt8], written: [UInt8]) {
        guard !framed.isEmpty else {
            self.init([], normalizes: true, written: written)
            return
        }
        var reader = FramedBytes.Reader(framed)
        guard let format = reader.nextString(), format == Format.semantic || format == Format.literal else {
            return nil
        }
        var entries: [Entry] = []
        while !reader.isAtEnd {
            guard let name = reader.nextString(), let value = reader.next(),
                FieldName(name)?.canonicalName == name, entries.last.map({ $0.name < name }) ?? true,
                value.isEmpty || value.first == Format.text || value.first == Format.digest,
                value.withUnsafeBytes({ String(validating: $0) }) != nil
            else { return nil }
            let isDigest = value.first == Format.digest
            entries.append(
                Entry(name: name, value: value.isEmpty ? nil : Array(value.dropFirst()), isDigest: isDigest)
            )
        }
        guard !entries.isEmpty else { return nil }
        self.init(entries, normalizes: format == Format.semantic, written: written)
    }

    private static func framed(_ entries: [Entry], normalizes: Bool) -> [UInt8] {
        guard !entries.isEmpty else { return [] }
        var frames = FramedBytes()
        frames.append(normalizes ? Format.semantic : Format.literal)
        for entry in entries {
            frames.append(entry.name)
            frames.append(entry.value.map { [entry.isDigest ? Format.digest : Format.text] + $0 } ?? [])
        }
        return frames.bytes
    }

    /// Whether a request has the same values in all nominated fields (RFC 9111 §4.1).
    ///
    /// - Parameters:
    ///   - request: the fields of the presented request.
    ///   - secret: the key the digests were made with.
    public func matches(_ request: HeaderFields, secret: [UInt8]) -> Bool {
        let presented = PresentedValues(request, nameCount: entries.count)
        return entries.allSatisfy { entry in
            entry.value
                == NominatedFields.value(of: entry, in: presented, secret: secret, normalizes: normalizes)
        }
    }

    /// Whether a request whose values differ would still get the same representation.
    ///
    /// This is so if it differs in whitespace around the commas of a list (RFC 9111 §4.1), or in the order of Accept-Language, or
    /// in anything in that field while the response is in the language that it prefers over all others (RFC 9110 §12.5.4). Never
    /// for a credential or User-Agent.
    ///
    /// - Parameters:
    ///   - request: the fields of the presented request.
    ///   - contentLanguage: the combined Content-Language of the stored response.
    ///   - secret: the key that the digests were made with.
    package func matchesInEffect(_ request: HeaderFields, contentLanguage: String?, secret: [UInt8]) -> Bool {
        guard normalizes else { return false }
        let presented = PresentedValues(request, nameCount: entries.count)
        return entries.allSatisfy { entry in
            let bytes = NominatedFields.value(of: entry, in: presented, secret: secret, normalizes: true)
            if bytes == entry.value { return true }
            if entry.isDigest { return false }
            guard let value = bytes.map({ String(decoding: $0, as: UTF8.self) }) else { return false }
            let stored = entry.value.map { String(decoding: $0, as: UTF8.self) }
            if entry.name == FieldName.acceptLanguage.canonicalName {
                if contentLanguage.map({ LanguagePreference.isFirst($0, in: value) }) ?? false { return true }
                let known = stored.flatMap { VariantNormalizer.unorderedLanguages($0) }
                return known != nil && known == VariantNormalizer.unorderedLanguages(value)
            }
            // Only a digest of a credential is known, so it never matches here.
            guard let known = stored, entry.name != FieldName.userAgent.canonicalName else { return false }
            return VariantNormalizer.withoutListSpace(known).utf8
                .elementsEqual(VariantNormalizer.withoutListSpace(value).utf8)
        }
    }

    private enum Format {
        static let semantic = "hnf1"
        static let literal = "hnf1-literal"
        /// The byte before a value that is present.
        static let text = UInt8(ascii: "=")
        static let digest = UInt8(ascii: "#")
    }

    private static func value(
        of entry: Entry,
        in request: PresentedValues,
        secret: [UInt8],
        normalizes: Bool
    ) -> [UInt8]? {
        guard var value = request[entry.name] else { return nil }
        if normalizes { value = VariantNormalizer.normalized(value, of: entry.name) }
        let bytes = Array(value.utf8)
        return entry.isDigest || isCredential(entry.name)
            ? Array(SHA256Digest(authenticating: bytes, key: secret).hex.utf8) : bytes
    }

    private static func isCredential(_ name: String) -> Bool {
        name == "authorization" || name == "cookie" || name == "proxy-authorization"
    }

}

/// Comparing values as they were written: the same bytes mean the same, whatever their syntax.
extension NominatedFields {
    private enum Written {
        /// Before a value.
        static let text = UInt8(ascii: "=")
        /// In place of Authorization or Cookie, whose values are never stored.
        static let credentials = UInt8(ascii: "#")
        /// In place of another credential.
        static let hidden = UInt8(ascii: "!")
    }

    private static func written(_ entry: Entry, in request: PresentedValues) -> [UInt8] {
        guard let value = request[entry.name] else { return [] }
        if entry.isDigest || entry.name == "proxy-authorization" { return [Written.hidden] }
        return isCredential(entry.name) ? [Written.credentials] : [Written.text] + Array(value.utf8)
    }

    /// Whether a request certainly has the nominated values, because it has the same bytes; false means nothing.
    ///
    /// - Parameters:
    ///   - written: ``written`` of the stored response; empty if that nominates nothing.
    ///   - fields: those of a request.
    ///   - implicit: those that its transport adds if it lacks them.
    ///   - areCredentialsEqual: whether its Authorization and Cookie are those of the stored response's request.
    package static func matches(
        written: UnsafeRawBufferPointer,
        _ fields: [String: String],
        implicit: HeaderFields,
        areCredentialsEqual: Bool
    ) -> Bool {
        var walk = FrameWalk(written)
        while !walk.isAtEnd {
            guard let name = walk.next(), let value = walk.next() else { return false }
            let sought = UnsafeRawBufferPointer(rebasing: written[name])
            let known = UnsafeRawBufferPointer(rebasing: written[value])
            if known.first == Written.credentials {
                guard areCredentialsEqual else { return false }
            } else if !matches(known, presented(sought, in: fields, implicit: implicit)) {
                return false
            }
        }
        return true
    }

    private enum Presented {
        case absent
        case value(String)
        /// Several values, which only count together.
        case several
    }

    private static func matches(_ known: UnsafeRawBufferPointer, _ presented: Presented) -> Bool {
        switch presented {
        case .absent: return known.isEmpty
        case .several: return false
        case .value(var value):
            guard known.first == Written.text else { return false }
            return value.withUTF8 {
                UnsafeRawBufferPointer(rebasing: known[1...]).hasSameBytes(as: UnsafeRawBufferPointer($0))
            }
        }
    }

    /// - Parameter name: in lower case.
    private static func presented(
        _ name: UnsafeRawBufferPointer,
        in fields: [String: String],
        implicit: HeaderFields
    ) -> Presented {
        var found = Presented.absent
        for (spelled, value) in fields where name.isLowerCase(of: spelled) {
            guard case .absent = found else { return .several }
            found = .value(value)
        }
        guard case .absent = found, !implicit.isEmpty else { return found }
        for line in implicit where name.isLowerCase(of: line.name.rawName) {
            guard case .absent = found else { return .several }
            found = .value(line.value)
        }
        return found
    }
}

/// The values of a request's fields by name, with repeated lines joined, for matching many names.
///
/// A few names are searched for line by line. For many names a table is built once: otherwise a Vary and a request that both name
/// thousands of fields would cost the product of both.
private struct PresentedValues {
    private let fields: HeaderFields
    private var table: [String: String]?

    /// - Parameters:
    ///   - fields: the request's fields.
    ///   - nameCount: how many names will be asked for.
    init(_ fields: HeaderFields, nameCount: Int) {
        self.fields = fields
        guard nameCount > PresentedValues.scanLimit else { return }
        var table: [String: String] = [:]
        for line in fields {
            if let known = table.index(forKey: line.name.canonicalName) {
                table.values[known] += PresentedValues.separator
                table.values[known] += line.value
            } else {
                table[line.name.canonicalName] = line.value
            }
        }
        self.table = table
    }

    /// The combined value of a field; nil if it is absent.
    ///
    /// - Parameter name: the name in lower case.
    subscript(_ name: String) -> String? {
        if let table { return table[name] }
        var joined: String?
        for line in fields where line.name.canonicalName == name {
            if joined == nil {
                joined = line.value
            } else {
                joined?.append(PresentedValues.separator)
                joined?.append(line.value)
            }
        }
        return joined
    }

    private static let separator = ", "
    private static let scanLimit = 8
}
