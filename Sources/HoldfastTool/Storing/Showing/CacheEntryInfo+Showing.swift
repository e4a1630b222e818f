// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastSemantics

    extension CacheEntryInfo {
        /// All that a listing tells. The URL is without userinfo, and of credentials that Vary names nothing is known.
        var json: [(String, JSONText)] {
            [
                ("url", .string(target.canonical)),
                ("method", .string(method.rawValue)),
                ("status", .int(status.rawValue)),
                ("bodyBytes", .int(bodyLength)),
                ("storedBytes", storedBytes.map(JSONText.int) ?? .null),
                ("storedAt", .string(ReadableText.instant(storedAt))),
                ("age", .int(Int(clamping: age))),
                ("freshnessLeft", .int(Int(clamping: freshnessLeft))),
                ("isFresh", .bool(isFresh)),
                ("needsConfirmation", .bool(needsConfirmation)),
                ("hits", hits.map(JSONText.int) ?? .null),
                ("tags", .array(tags.sorted().map(JSONText.string))),
                ("varies", .object(nominated.map { ($0.name, $0.value.json) })),
                ("isPersonal", .bool(isPersonal)),
                ("isPinned", .bool(isPinned)),
                ("isPartial", .bool(storedRanges != nil)),
            ]
        }

        /// What makes this variant another than its neighbours, and what else is particular about it.
        var notes: String {
            var notes = nominated.map(\.description)
            if isPersonal { notes.append("personal") }
            if isPinned { notes.append("pinned") }
            if storedRanges != nil { notes.append("partial") }
            return notes.joined(separator: ", ")
        }
    }

    extension NominatedField.Value {
        fileprivate var json: JSONText {
            if let text { return .string(text) }
            return isHidden ? .string("(hidden)") : .null
        }
    }
#endif
