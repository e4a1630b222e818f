// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// Some of the stored responses, as JSON tells them.
    struct EntryListFacts: Encodable, Sendable {
        let entries: [EntryFacts]
        /// Where the next page begins; nil where there is none.
        let next: String?
        /// How many entries were looked at for this page, and how many there are.
        let looked: Int
        let total: Int
        /// When the ages were judged.
        let at: Int64
    }

    /// One stored response.
    struct EntryFacts: Encodable, Sendable {
        let id: String
        let url: String
        let method: String
        let status: Int
        let bodyLength: Int
        let storedBytes: Int?
        let hits: Int?
        let age: Int64
        let freshnessLeft: Int64
        let isFresh: Bool
        let needsConfirmation: Bool
        let isPersonal: Bool
        let isPinned: Bool
        let storedAt: Int64
        let decision: DecisionFacts?

        init(_ info: CacheEntryInfo, id: String, decision: LastDecisions.Noted?) {
            self.id = id
            url = EntryFacts.shown(info.target)
            method = info.method.rawValue
            status = info.status.rawValue
            bodyLength = info.bodyLength
            storedBytes = info.storedBytes
            hits = info.hits
            age = info.age
            freshnessLeft = info.freshnessLeft
            isFresh = info.isFresh
            needsConfirmation = info.needsConfirmation
            isPersonal = info.isPersonal
            isPinned = info.isPinned
            storedAt = info.storedAt.millisecondsSinceEpoch
            self.decision = decision.map { DecisionFacts($0.decision, at: $0.time) }
        }

        /// A URI without what may be a credential in it.
        static func shown(_ target: TargetURI) -> String {
            guard let url = URL(string: target.canonical) else { return target.origin + "/" + RedactedURL.placeholder }
            return RedactedURL(url).description
        }
    }

    /// One stored response with its head.
    struct EntryDetailFacts: Encodable, Sendable {
        /// A field line, of which the value may be hidden.
        struct Line: Encodable, Sendable {
            let name: String
            let value: String?
            let isHidden: Bool
        }

        static let mostLines = 256

        let entry: EntryFacts
        let headLength: Int
        let fields: [Line]
        /// What its Vary nominates; no value and not hidden: the request had no such field.
        let nominated: [Line]
        let tags: [String]
        /// Which bytes are there, where not all are.
        let storedRanges: String?
        let at: Int64

        init(_ exported: ExportedEntry, id: String, decision: LastDecisions.Noted?, now: Timestamp) {
            let info = exported.info
            entry = EntryFacts(info, id: id, decision: decision)
            headLength = info.headLength
            fields = exported.head.fields.prefix(EntryDetailFacts.mostLines).map { line in
                let shown = FieldMask.shown(line.value, of: line.name)
                return Line(name: line.name.rawName, value: shown, isHidden: shown == nil)
            }
            nominated = info.nominated.prefix(EntryDetailFacts.mostLines).map { field in
                guard let value = field.value.text, let name = FieldName(field.name) else {
                    return Line(name: field.name, value: nil, isHidden: field.value.isHidden)
                }
                let shown = FieldMask.shown(value, of: name)
                return Line(name: field.name, value: shown, isHidden: shown == nil)
            }
            tags = info.tags.sorted()
            storedRanges = info.storedRanges.map { ranges in
                ranges.intervals.prefix(16).map { "\($0.lowerBound)–\($0.upperBound - 1)" }.joined(separator: ", ")
            }
            at = now.millisecondsSinceEpoch
        }
    }
#endif
