// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    private import Synchronization

    /// Answers the inspector's requests, whatever server they come from.
    struct InspectorResponder: Sendable {
        let model: InspectorModel
        let governor: RetryGovernor?
        let guarding: InspectorGuard
        let page: InspectorPage
        private let index = EntryIndex()

        init(model: InspectorModel, governor: RetryGovernor?, guarding: InspectorGuard) {
            self.model = model
            self.governor = governor
            self.guarding = guarding
            page = InspectorPage(word: guarding.word)
        }

        /// The response to a request; a refusal with its reason if it must not be answered.
        ///
        /// Runs off the server's event loops, because a list may take a while.
        @concurrent
        func answer(_ request: InspectorRequest) async -> Response {
            do {
                try guarding.check(request)
                return try await route(request)
            } catch let refusal as InspectorGuard.Refusal {
                return refused(refusal)
            } catch let error as StoreError {
                // Its message may contain a path; the code is enough to look it up.
                return refused(InspectorGuard.Refusal(status: 500, message: "The store failed: \(error.code)."))
            } catch let error as ServiceError where error.code == .bodyTooLarge {
                return refused(InspectorGuard.Refusal(status: 413, message: "The order is too long."))
            } catch {
                return refused(InspectorGuard.Refusal(status: 500, message: "The inspector failed. Try again."))
            }
        }

        private func route(_ request: InspectorRequest) async throws -> Response {
            switch request.path {
            case "/":
                try allow("GET", or: "HEAD", for: request)
                return answered(200, type: "text/html; charset=utf-8", body: page.bytes)
            case "/api/summary":
                try allow("GET", or: "HEAD", for: request)
                _ = try request.arguments(named: [])
                return try json(SummaryFacts(model, governor: governor))
            case "/api/calls":
                try allow("GET", or: "HEAD", for: request)
                let after = try request.arguments(named: ["after"])["after"]
                let number: UInt64 = try InspectorRequest.number(after, named: "after") ?? 0
                let (calls, newest) = model.calls(after: number, limit: RecentCalls.limit)
                return try json(CallListFacts(calls: calls.map { CallFacts($0) }, newest: newest))
            case "/api/entries":
                try allow("GET", or: "HEAD", for: request)
                return try json(try await EntryQuery(request).facts(model, index: index))
            case "/api/entry":
                try allow("GET", or: "HEAD", for: request)
                return try json(try await detail(request.arguments(named: ["id"])["id"] ?? ""))
            case "/api/purge":
                try allow("POST", or: nil, for: request)
                _ = try request.arguments(named: [])
                try guarding.checkOrder(request)
                return try json(try await purge(request))
            default:
                throw InspectorGuard.Refusal(status: 404, message: "There is nothing here. The page is at /.")
            }
        }

        private func detail(_ id: String) async throws -> EntryDetailFacts {
            let now = model.clock.timestamp
            guard let info = index.entry(id), let exported = try await model.cache.export(info, now: now) else {
                throw InspectorGuard.Refusal(status: 404, message: "The entry is gone. List the entries again.")
            }
            let decision = model.lastDecisions(of: [info.target.canonical]).first ?? nil
            return EntryDetailFacts(exported, id: id, decision: decision, now: now)
        }

        private func purge(_ request: InspectorRequest) async throws -> PurgeRequest.Outcome {
            let order = try PurgeRequest.read(try await request.content(upTo: PurgeRequest.longest))
            let selection = try order.selected(index)
            let now = model.clock.timestamp
            let count =
                try await order.soft
                ? model.cache.markStale(selection, now: now) : model.cache.remove(selection, now: now)
            return PurgeRequest.Outcome(count: count)
        }

        private func allow(
            _ method: RequestMethod,
            or other: RequestMethod?,
            for request: InspectorRequest
        ) throws(InspectorGuard.Refusal) {
            guard request.method == method || request.method == other else {
                let allowed = [method, other].compactMap { $0?.rawValue }.joined(separator: ", ")
                throw InspectorGuard.Refusal(status: 405, message: "Use \(allowed).", allow: allowed)
            }
        }

        // MARK: Making responses

        private func json(_ facts: some Encodable) throws -> Response {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return answered(200, type: "application/json", body: ByteChunk(copying: try encoder.encode(facts)))
        }

        private func refused(_ refusal: InspectorGuard.Refusal) -> Response {
            var response = answered(
                refusal.status,
                type: "text/plain; charset=utf-8",
                body: ByteChunk(copying: (refusal.message + "\n").utf8)
            )
            if let allow = refusal.allow { response.fields["Allow"] = allow }
            return response
        }

        private func answered(_ status: StatusCode, type: String, body: ByteChunk) -> Response {
            let fields: HeaderFields = [
                .contentType: type,
                .contentLength: String(body.count),
                .cacheControl: "no-store",
                "Content-Security-Policy": page.policy,
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
            ]
            return Response(status: status, fields: fields, body: ResponseBody(body), source: .synthesized)
        }
    }

    /// The entries that a page requests.
    struct EntryQuery: Sendable {
        /// The most entries to examine for one response, so that a search proceeds in steps.
        static let mostLooks = 20_000
        static let mostEntries = 200
        static let longestSearch = 256

        /// The text that the URL without credentials, the status or a tag must contain, ignoring case; empty: any.
        let search: String
        let cursor: StoreCursor?
        let limit: Int

        /// Reads the query of a request.
        ///
        /// - Throws: a refusal if something in it is invalid.
        init(_ request: InspectorRequest) throws(InspectorGuard.Refusal) {
            let values = try request.arguments(named: ["search", "cursor", "limit"])
            search = String((values["search"] ?? "").prefix(EntryQuery.longestSearch)).lowercased()
            limit = min(
                max(try InspectorRequest.number(values["limit"], named: "limit") ?? 50, 1),
                EntryQuery.mostEntries
            )
            guard let text = values["cursor"], !text.isEmpty else {
                cursor = nil
                return
            }
            guard let bytes = EntryQuery.bytes(ofHex: text) else {
                throw .invalid("The cursor is invalid. Begin with the first page.")
            }
            cursor = StoreCursor(bytes)
        }

        /// The next page.
        ///
        /// A search ends with the first page of the store that gives enough entries, so it may return up to twice as
        /// many.
        func facts(_ model: InspectorModel, index: EntryIndex) async throws -> EntryListFacts {
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
                entries: zip(found, decisions).map { EntryFacts($0, id: index.name(of: $0), decision: $1) },
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
            bytes.map(\.hexDigits).joined()
        }

        private static func bytes(ofHex text: String) -> [UInt8]? {
            let digits = Array(text.utf8)
            guard digits.count.isMultiple(of: 2), digits.count <= 16_384 else { return nil }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(digits.count / 2)
            for index in stride(from: 0, to: digits.count, by: 2) {
                guard let high = digits[index].hexDigit, let low = digits[index + 1].hexDigit else { return nil }
                bytes.append(UInt8(high << 4 | low))
            }
            return bytes
        }
    }

    /// The entries that a page was shown, by short names; the oldest are forgotten.
    final class EntryIndex: Sendable {
        private struct State {
            var entries: [String: CacheEntryInfo] = [:]
            var order: [String] = []
            var oldest = 0
        }

        private let state = Mutex(State())
        private let limit: Int

        /// Creates an empty index.
        ///
        /// - Parameter limit: the most entries to remember; at least 1.
        init(limit: Int = 2048) {
            self.limit = max(1, limit)
        }

        /// The name of an entry: the same for all its versions, and it reveals nothing.
        func name(of info: CacheEntryInfo) -> String {
            var hasher = Hasher()
            hasher.combine(info.key)
            hasher.combine(info.variant)
            let name = UInt64(bitPattern: Int64(hasher.finalize())).hexDigits
            state.withLock { state in
                if state.entries.updateValue(info, forKey: name) != nil { return }
                if state.order.count < limit {
                    state.order.append(name)
                } else {
                    state.entries[state.order[state.oldest]] = nil
                    state.order[state.oldest] = name
                    state.oldest = (state.oldest + 1) % limit
                }
            }
            return name
        }

        /// The entry with a name; nil if it was never given or is forgotten.
        func entry(_ name: String) -> CacheEntryInfo? {
            state.withLock { $0.entries[name] }
        }

        /// How many entries are known.
        var count: Int { state.withLock { $0.entries.count } }
    }

    /// A purge that a person requests.
    struct PurgeRequest: Decodable, Sendable {
        /// The result of the purge.
        struct Outcome: Encodable, Sendable {
            /// How many responses were removed or marked; nil if the store did not count them.
            let count: Int?
        }

        static let longest = 16_384

        /// `entry`, `prefix`, `tag` or `all`.
        let selection: String
        /// The entry's name, the URL, or the tag; nil for all.
        let value: String?
        /// Whether to mark the responses, so that the origin must confirm them, instead of removing them.
        let soft: Bool

        /// Reads a purge request.
        ///
        /// - Throws: a refusal if it is invalid.
        static func read(_ bytes: ByteChunk) throws(InspectorGuard.Refusal) -> PurgeRequest {
            do {
                return try JSONDecoder().decode(PurgeRequest.self, from: bytes.withUnsafeBytes { Data($0) })
            } catch {
                throw .invalid(
                    "The order cannot be read. Send, for example, {\"selection\": \"all\", \"soft\": false}."
                )
            }
        }

        /// The selected responses.
        ///
        /// - Throws: a refusal if nothing is selected, or the request is invalid.
        func selected(_ index: EntryIndex) throws(InspectorGuard.Refusal) -> CacheSelection {
            switch (selection, value) {
            case ("all", nil): return .all
            case ("tag", let tag?) where !tag.isEmpty: return .tag(tag)
            case ("prefix", let text?):
                guard let target = try? TargetURI(text), let url = URL(string: target.canonical) else {
                    throw .invalid("The prefix must be a URL, such as http://example.com/images.")
                }
                return .path(url)
            case ("entry", let name?):
                guard let chosen = index.entry(name) else {
                    throw InspectorGuard.Refusal(
                        status: 404,
                        message: "The entry is no longer known. List the entries again."
                    )
                }
                return .matching { $0.key == chosen.key && $0.variant == chosen.variant }
            default:
                throw .invalid(
                    "Specify what to purge: an entry, a prefix or a tag with its value, or all without one."
                )
            }
        }
    }
#endif
