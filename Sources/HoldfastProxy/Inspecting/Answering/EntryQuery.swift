// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// Which entries a page wants to be shown.
    struct EntryQuery: Sendable {
        /// The most entries that are looked at for one answer, so that a search goes on in steps.
        static let mostLooks = 20_000
        static let mostEntries = 200
        static let longestSearch = 256

        /// What the URL, without credentials, the status or a tag must contain, letter case aside; empty: anything.
        let search: String
        let cursor: StoreCursor?
        let limit: Int

        /// The query of a request.
        ///
        /// - Throws: a refusal where its cursor is none.
        init(_ request: InspectorRequest) throws(InspectorGuard.Refusal) {
            search = String((request.argument("search") ?? "").prefix(EntryQuery.longestSearch)).lowercased()
            limit = min(max(request.argument("limit").flatMap { Int($0) } ?? 50, 1), EntryQuery.mostEntries)
            guard let text = request.argument("cursor"), !text.isEmpty else {
                cursor = nil
                return
            }
            guard let bytes = EntryQuery.bytes(ofHex: text) else {
                throw InspectorGuard.Refusal(status: 400, message: "The cursor is none; begin with the first page.")
            }
            cursor = StoreCursor(bytes)
        }

        /// The next page.
        ///
        /// A search ends with the first page of the store by which there are enough, so it may give up to twice as many.
        func facts(_ model: InspectorModel, _ book: EntryBook) async throws -> EntryListFacts {
            let now = model.clock.timestamp
            var listing = model.cache.entries(pageSize: limit, now: now)
            listing.start = cursor
            var iterator = listing.makeAsyncIterator()
            var found: [CacheEntryInfo] = []
            var looked = 0
            while let info = try await iterator.next() {
                looked += 1
                if isWanted(info) { found.append(info) }
                if iterator.isAtPageEnd, found.count >= limit || looked >= EntryQuery.mostLooks { break }
            }
            let decisions = model.lastDecisions(of: found.map(\.target.canonical))
            return EntryListFacts(
                entries: zip(found, decisions).map { EntryFacts($0, id: book.name(of: $0), decision: $1) },
                next: iterator.cursor.map { EntryQuery.hex($0.bytes) },
                looked: looked,
                total: model.cache.store.statistics.entryCount,
                at: now.millisecondsSinceEpoch
            )
        }

        private func isWanted(_ info: CacheEntryInfo) -> Bool {
            search.isEmpty || EntryFacts.shown(info.target).lowercased().contains(search)
                || String(info.status.rawValue) == search || info.tags.contains { $0.lowercased().contains(search) }
        }

        private static func hex(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }

        private static func bytes(ofHex text: String) -> [UInt8]? {
            let digits = Array(text.utf8)
            guard digits.count.isMultiple(of: 2), digits.count <= 16_384 else { return nil }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(digits.count / 2)
            for index in stride(from: 0, to: digits.count, by: 2) {
                guard let high = hexValue(digits[index]), let low = hexValue(digits[index + 1]) else { return nil }
                bytes.append(high << 4 | low)
            }
            return bytes
        }

        private static func hexValue(_ byte: UInt8) -> UInt8? {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
            default: nil
            }
        }
    }
#endif
