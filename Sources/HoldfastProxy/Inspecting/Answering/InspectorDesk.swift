// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// Answers the inspector's requests, whatever server they come in by.
    struct InspectorDesk: Sendable {
        let model: InspectorModel
        let governor: RetryGovernor?
        let guarding: InspectorGuard
        let page: InspectorPage
        private let book = EntryBook()

        init(model: InspectorModel, governor: RetryGovernor?, guarding: InspectorGuard) {
            self.model = model
            self.governor = governor
            self.guarding = guarding
            page = InspectorPage(word: guarding.word)
        }

        /// The answer to a request; a refusal with a sentence that says why where it is not to be answered.
        ///
        /// Runs off the server's event loops, since a list may take a while to make.
        @concurrent
        func answer(_ request: InspectorRequest) async -> Response {
            do {
                try guarding.check(request)
                return try await route(request)
            } catch let refusal as InspectorGuard.Refusal {
                return refused(refusal)
            } catch let error as StoreError {
                // Its message may name a path; the code is enough to look it up by.
                return refused(InspectorGuard.Refusal(status: 500, message: "The store failed: \(error.code)."))
            } catch let error as ServiceError where error.code == .bodyTooLarge {
                return refused(InspectorGuard.Refusal(status: 413, message: "The order is too long."))
            } catch {
                return refused(InspectorGuard.Refusal(status: 500, message: "The inspector failed; try again."))
            }
        }

        private func route(_ request: InspectorRequest) async throws -> Response {
            switch request.path {
            case "/":
                try allow("GET", "HEAD", request)
                return answered(200, "text/html; charset=utf-8", page.bytes)
            case "/api/summary":
                try allow("GET", "HEAD", request)
                return try json(SummaryFacts(model, governor: governor))
            case "/api/calls":
                try allow("GET", "HEAD", request)
                let after = request.argument("after").flatMap { UInt64($0) } ?? 0
                let (calls, newest) = model.calls(after: after, limit: RecentCalls.limit)
                return try json(CallListFacts(calls: calls.map { CallFacts($0) }, newest: newest))
            case "/api/entries":
                try allow("GET", "HEAD", request)
                return try json(try await EntryQuery(request).facts(model, book))
            case "/api/entry":
                try allow("GET", "HEAD", request)
                return try json(try await detail(request.argument("id") ?? ""))
            case "/api/purge":
                try allow("POST", nil, request)
                try guarding.checkOrder(request)
                return try json(try await purge(request))
            default:
                throw InspectorGuard.Refusal(status: 404, message: "There is nothing here; the page is at /.")
            }
        }

        private func detail(_ id: String) async throws -> EntryDetailFacts {
            let now = model.clock.timestamp
            guard let info = book.entry(id), let exported = try await model.cache.export(info, now: now) else {
                throw InspectorGuard.Refusal(status: 404, message: "The entry is gone; list the entries again.")
            }
            let decision = model.lastDecisions(of: [info.target.canonical]).first ?? nil
            return EntryDetailFacts(exported, id: id, decision: decision, now: now)
        }

        private func purge(_ request: InspectorRequest) async throws -> PurgeOrder.Outcome {
            let order = try PurgeOrder.read(try await request.content(upTo: PurgeOrder.longest))
            let selection = try order.selected(book)
            let count = try await model.cache.remove(selection, softly: order.softly, now: model.clock.timestamp)
            return PurgeOrder.Outcome(count: count)
        }

        private func allow(
            _ method: RequestMethod,
            _ other: RequestMethod?,
            _ request: InspectorRequest
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
            return answered(200, "application/json", ByteChunk(copying: try encoder.encode(facts)))
        }

        private func refused(_ refusal: InspectorGuard.Refusal) -> Response {
            var response = answered(
                refusal.status,
                "text/plain; charset=utf-8",
                ByteChunk(copying: (refusal.message + "\n").utf8)
            )
            if let allow = refusal.allow { response.fields["Allow"] = allow }
            return response
        }

        private func answered(_ status: StatusCode, _ type: String, _ body: ByteChunk) -> Response {
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
#endif
