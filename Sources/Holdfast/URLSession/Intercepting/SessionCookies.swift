// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The cookies of the session that an intercepted request comes from.
///
/// A transport has cookies of its own, which it may have got for other sessions; they are not to go out for this one. So the
/// session's cookies stand in the request as a field, and each hop of a redirect is given those for where it leads.
struct SessionCookies: Sendable {
    private let storage: HTTPCookieStorage?
    private let acceptsCookies: Bool
    private let fieldsOfHops: SessionFields
    private let sendsStored: Bool

    /// The cookies for one request, as its caller made it.
    ///
    /// - Parameters:
    ///   - fields: what the platform has added to the request, or would have.
    ///   - fieldsOfHops: what is added after a redirect.
    init(
        _ storage: HTTPCookieStorage?,
        acceptsCookies: Bool,
        _ fields: SessionFields,
        _ fieldsOfHops: SessionFields,
        for request: URLRequest
    ) {
        self.storage = storage
        self.acceptsCookies = acceptsCookies
        self.fieldsOfHops = fieldsOfHops
        // Foundation on Linux has put the stored ones in by now, as if they were the caller's.
        let present = request.value(forHTTPHeaderField: "Cookie").map { SessionCookies.pairs(in: $0) }
        sendsStored =
            request.httpShouldHandleCookies
            && (present == nil
                || present == SessionCookies.stored(for: request, fields).map { SessionCookies.pairs(in: $0) })
    }

    /// Keeps the cookies that a response from the network sets; one from a store has set them before.
    func keep(_ response: Response) {
        guard acceptsCookies, let storage, let url = response.url else { return }
        switch response.source {
        case .network, .inProcess: break
        case .fresh, .stale, .revalidated, .collapsed, .synthesized: return
        }
        for value in response.fields.values(of: "Set-Cookie") {
            let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
            storage.setCookies(cookies, for: url, mainDocumentURL: nil)
        }
    }

    /// Gives the next hop of a redirect the cookies for where it leads, and takes out what the session has added for another
    /// origin; a Cookie field of the caller's own stays what it is.
    func renew(in request: inout URLRequest, isForeignHop: Bool) {
        if isForeignHop {
            for line in fieldsOfHops.bound where request.value(forHTTPHeaderField: line.name.rawName) == line.value {
                request.setValue(nil, forHTTPHeaderField: line.name.rawName)
            }
        }
        guard sendsStored else { return }
        let stored = SessionCookies.stored(for: request, fieldsOfHops, isForeignHop: isForeignHop)
        request.setValue(stored, forHTTPHeaderField: "Cookie")
    }

    /// What the session would send of its own accord.
    private static func stored(
        for request: URLRequest,
        _ fields: SessionFields,
        isForeignHop: Bool = false
    ) -> String? {
        var bare = request
        bare.setValue(nil, forHTTPHeaderField: "Cookie")
        bare.httpShouldHandleCookies = true
        return fields.fields(for: bare, isForeignHop: isForeignHop)["Cookie"]
    }

    /// A storage gives its cookies in no certain order.
    private static func pairs(in field: String) -> Set<String> {
        Set(field.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) })
    }
}
