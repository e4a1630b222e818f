// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Asking the origin whether what is stored still holds (RFC 9111 §4.3).
public enum Validation {
    /// The fields that make a request conditional on stored responses (RFC 9111 §4.3.1).
    ///
    /// - Parameter candidates: the selected response first, then further variants.
    /// - Returns: If-None-Match with all entity tags, each once, in the spelling they came in; If-Modified-Since with the
    ///   first candidate's date. Empty when there is no validator.
    public static func conditionalFields(for candidates: [StoredResponse]) -> HeaderFields {
        var fields = HeaderFields()
        var known: Set<EntityTag> = []
        let tags = candidates.compactMap(\.head.entityTag).filter { known.insert($0).inserted }.map(\.description)
        if !tags.isEmpty { fields.append(.ifNoneMatch, tags.joined(separator: ", ")) }
        if let first = candidates.first, first.lastModified != nil,
            let value = first.head.fields[.lastModified]
        {
            fields.append(.ifModifiedSince, value)
        }
        return fields
    }

    /// Which stored response a 304 speaks of (RFC 9111 §4.3.3, §4.3.4).
    ///
    /// A strong validator in the 304 must match a stored one strongly; where none does, or the validator is weak, the
    /// weak comparison decides, since that is how the origin compared. Without any validator it can only mean the one
    /// candidate there was. Tags count as they came, decoded content or not: a 304 freshens fields, not bytes.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - candidates: the responses that were offered, the selected one first.
    /// - Returns: an index into `candidates`; nil when the 304 fits none, and the request must be sent unconditionally.
    public static func selected(by notModified: ResponseHead, among candidates: [StoredResponse]) -> Int? {
        if let tag = notModified.entityTag {
            let strong = candidates.firstIndex { $0.head.entityTag?.strongMatches(tag) ?? false }
            return strong ?? candidates.firstIndex { $0.head.entityTag?.weakMatches(tag) ?? false }
        }
        if notModified.fields.contains(.lastModified), candidates.count > 1 {
            guard let received = candidates.first?.responseTime,
                let date = notModified.lastModified(receivedAt: received)
            else { return nil }
            return candidates.firstIndex { $0.lastModified == date }
        }
        guard let only = candidates.first, candidates.count == 1 else { return nil }
        guard notModified.fields.contains(.lastModified) else { return 0 }
        return notModified.lastModified(receivedAt: only.responseTime) == only.lastModified ? 0 : nil
    }
}
