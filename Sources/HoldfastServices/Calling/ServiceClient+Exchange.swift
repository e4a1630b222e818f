// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

extension ServiceClient {
    /// Sends the built request, and follows a redirect that the request's `handle` asks for.
    func exchange<R: Request>(
        _ request: R,
        built: BuiltRequest,
        deadline: CallDeadline?
    ) async throws -> DecodedResponse<R.Result> {
        var built = built
        var origin: BuiltRequest? = built
        var redirects = 0
        while true {
            let notes = CallNotes<R.Result>(built.urlRequest)
            defer { notes.end() }
            let options = options(of: request, built: built, origin: origin, deadline: deadline, notes: notes)
            do {
                var response = try await pipeline.send(built.urlRequest, body: built.body, options: options)
                let value = try await value(of: &response, request: request, deadline: deadline, notes: notes)
                return DecodedResponse(value: value, response: response, urlRequest: notes.urlRequest)
            } catch {
                guard !error.isCancellation, !Task.isCancelled, let refused = notes.refused else { throw error }
                switch request.handle(error, response: refused) {
                case .error(let error): throw error
                case .redirect(let url):
                    guard redirects < 16,
                        let following = built.redirected(to: url, withholding: options.credentialFields)
                    else { throw error }
                    redirects += 1
                    if following.isForeign { origin = nil }
                    built = following.request
                }
            }
        }
    }

    private func options<R: Request>(
        of request: R,
        built: BuiltRequest,
        origin: BuiltRequest?,
        deadline: CallDeadline?,
        notes: CallNotes<R.Result>
    ) -> CallOptions {
        var options = request.options
        if let deadline {
            let left = pipeline.configuration.clock.now.duration(to: deadline.instant)
            if let own = options.timeout ?? pipeline.configuration.callTimeout, own < left {
                options.setTimeout(own, of: pipeline.timeLimit(of: options))
            } else {
                options.setTimeout(left, of: deadline.limit)
            }
        }
        if options.operationName == nil { options.operationName = CallLogger.operationName(of: request) }
        options.credentialFields += built.credentialFields
        options.acceptance = acceptance(of: request, deadline: deadline, notes: notes)
        if let origin { options.prepare.append(bringingUpToDate(request, built: origin)) }
        // If the call went on to another origin, the pipeline sees that origin as its first.
        if origin == nil || request.authorizationRequirement == .none { options.usesAuthorization = false }
        if origin == nil { options.isForeignHop = true }
        options.prepare.append { urlRequest, _ in notes.sent(urlRequest) }
        return options
    }

    /// Before a retry and after a redirect, builds the head again and sends what differs: there may be a new token by then.
    ///
    /// After a redirect only fields that were sent along are updated; the others were removed on purpose.
    private func bringingUpToDate<R: Request>(_ request: R, built: BuiltRequest) -> PrepareStep {
        { urlRequest, context in
            guard context.attempt > 1 || context.redirectCount > 0 else { return }
            let newest = try await head(of: request, contentType: built.contentType)
            let before = built.urlRequest.allHTTPHeaderFields ?? [:]
            let after = newest.allHTTPHeaderFields ?? [:]
            for name in Set(before.keys).union(after.keys) where before[name] != after[name] {
                // The content goes out as it was built, and a boundary in its type belongs to it.
                if FieldName(name) == .contentType { continue }
                let isOwn = before[name] != nil && urlRequest.value(forHTTPHeaderField: name) == before[name]
                guard context.redirectCount == 0 || isOwn else { continue }
                // Another origin does not get newer values; it gets again what it was first sent.
                if context.isForeignHop, !NonCredentialFields.contains(named: name) { continue }
                urlRequest.setValue(after[name], forHTTPHeaderField: name)
            }
            // The server decides where a redirect leads.
            guard context.redirectCount == 0, !context.isForeignHop else { return }
            urlRequest.takeQuery(of: newest, inPlaceOf: built.urlRequest)
        }
    }
}

extension URLRequest {
    /// Takes over the query and the user of a newer request in place of those of an earlier one: they may contain a token.
    ///
    /// What others appended to the earlier query stays. Nothing is taken over if the rest of the URL differs, or if the earlier
    /// query is no longer there.
    fileprivate mutating func takeQuery(of newer: URLRequest, inPlaceOf earlier: URLRequest) {
        guard newer.url != earlier.url, let own = url?.divided, let before = earlier.url?.divided,
            let after = newer.url?.divided, own.place == before.place, after.place == before.place,
            own.user == before.user,
            own.query == before.query || own.query.hasPrefix(before.query + "&") || before.query.isEmpty
        else { return }
        let added = own.query.dropFirst(before.query.count).drop { $0 == "&" }
        let query = [after.query, String(added)].filter { !$0.isEmpty }.joined(separator: "&")
        guard var parts = newer.url.flatMap({ URLComponents(url: $0, resolvingAgainstBaseURL: true) }) else { return }
        parts.percentEncodedQuery = query.isEmpty ? nil : query
        if let url = parts.url { self.url = url }
    }
}

extension URL {
    /// The URL without user and query, the user, and the query.
    fileprivate var divided: (place: String, user: String, query: String)? {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
        let user = "\(parts.percentEncodedUser ?? "")\n\(parts.percentEncodedPassword ?? "")"
        let query = parts.percentEncodedQuery ?? ""
        (parts.percentEncodedUser, parts.percentEncodedPassword, parts.percentEncodedQuery) = (nil, nil, nil)
        parts.fragment = nil
        return parts.string.map { ($0, user, query) }
    }
}
