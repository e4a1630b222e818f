// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The cookies of the session that an intercepted request comes from.
///
/// A transport has its own cookies, which may belong to other sessions and must not be sent for this one. So the session's cookies
/// are added to the request as a field, and each hop of a redirect gets those for its target.
struct SessionCookies: Sendable {
    private let storage: HTTPCookieStorage?
    private let acceptsCookies: Bool
    private let fieldsOfHops: SessionFields
    private let sendsStored: Bool
    private let additions = Additions()

    /// What distinguishes the cookies of a storage (RFC 6265 §5.3, step 11).
    private struct Name: Hashable {
        let name: String
        let domain: String
        let path: String

        init(_ cookie: HTTPCookie) { (name, domain, path) = (cookie.name, cookie.domain, cookie.path) }
    }

    /// The cookies that storages were given, so that an old response does not bring back one that was removed since.
    ///
    /// Limited: a forgotten one may come back once more.
    private final class GivenCookies: Sendable {
        private struct Given {
            /// Another storage may have taken the address of this one.
            weak var storage: HTTPCookieStorage?
            var names: Set<Name> = []
        }

        private static let mostStorages = 256
        private static let mostNames = 1_024
        private let storages = Mutex<[ObjectIdentifier: Given]>([:])

        func note(_ name: Name, to storage: HTTPCookieStorage) {
            storages.withLock { storages in
                let id = ObjectIdentifier(storage)
                var given = storages[id] ?? Given(storage: storage)
                if given.storage !== storage || given.names.count >= GivenCookies.mostNames {
                    given = Given(storage: storage)
                }
                given.names.insert(name)
                if storages[id] == nil, storages.count >= GivenCookies.mostStorages {
                    storages = storages.filter { $0.value.storage != nil }
                    if storages.count >= GivenCookies.mostStorages { storages = [:] }
                }
                storages[id] = given
            }
        }

        func contains(_ name: Name, of storage: HTTPCookieStorage) -> Bool {
            storages.withLock { storages in
                guard let given = storages[ObjectIdentifier(storage)], given.storage === storage else { return false }
                return given.names.contains(name)
            }
        }
    }

    private static let given = GivenCookies()

    /// The values that the hops of one call have added from a store: those of a later hop replace them.
    private final class Additions: Sendable {
        let values = Mutex<[Name: String]>([:])
    }

    /// The cookies for one request, as its caller made it.
    ///
    /// - Parameters:
    ///   - fields: the fields that the platform has added to the request, or would have.
    ///   - fieldsOfHops: the fields that are added after a redirect.
    init(
        _ storage: HTTPCookieStorage?,
        acceptsCookies: Bool,
        fields: SessionFields,
        fieldsOfHops: SessionFields,
        for request: URLRequest
    ) {
        self.storage = storage
        self.acceptsCookies = acceptsCookies
        self.fieldsOfHops = fieldsOfHops
        // Foundation on Linux has already added the stored ones, as if they were the caller's.
        let present = request.value(forHTTPHeaderField: "Cookie").map { SessionCookies.pairs(in: $0) }
        sendsStored =
            request.httpShouldHandleCookies
            && (present == nil
                || present == SessionCookies.stored(for: request, fields).map { SessionCookies.pairs(in: $0) })
    }

    /// Keeps the cookies of a response that an attempt has received, whether or not it becomes the call's response.
    func keep(received response: Response) {
        switch response.source {
        case .network, .inProcess: keep(response)
        // A response of another pipeline below may come from its store.
        case .fresh, .stale, .revalidated, .collapsed, .synthesized: break
        }
    }

    /// Keeps the cookies of the response that one hop of the call ends with, if none of its own attempts received it.
    ///
    /// What another call has just received is as new as what an attempt gets. A stored response may be older than the storage's
    /// cookies, so it adds only cookies that are not there and never were, and replaces only those that an earlier hop of this call
    /// has added. A `private` one was stored for the user it was sent to, and adds none.
    func keep(answer response: Response) {
        switch response.source {
        case .network, .inProcess, .synthesized: break
        case .collapsed where response.storedOrigin == nil: keep(response)
        case .fresh, .stale, .revalidated, .collapsed: keep(response, isStored: true)
        }
    }

    private func keep(_ response: Response, isStored: Bool = false) {
        guard acceptsCookies, let storage, let url = response.url else { return }
        if isStored, CacheControl(response.fields).private != .absent { return }
        for value in response.fields.values(of: "Set-Cookie") {
            var cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
            if isStored { cookies.removeAll { !adds($0, to: storage) } }
            for cookie in cookies { SessionCookies.given.note(Name(cookie), to: storage) }
            storage.setCookies(cookies, for: url, mainDocumentURL: nil)
        }
    }

    /// Whether a cookie of a stored response is put into the storage; records it.
    private func adds(_ cookie: HTTPCookie, to storage: HTTPCookieStorage) -> Bool {
        let name = Name(cookie)
        let held = storage.cookies?.first { Name($0) == name }?.value
        return additions.values.withLock { values in
            if let held {
                guard values[name] == held else { return false }
            } else if values[name] == nil, SessionCookies.given.contains(name, of: storage) {
                // It was there and is gone: whoever logged out stays logged out.
                return false
            } else if let end = cookie.expiresDate, end <= Date() {
                // It was set in order to be removed, and is not there.
                return false
            }
            values[name] = cookie.value
            return true
        }
    }

    /// Gives the next hop of a redirect the cookies for its target, and removes what the session has added for another origin; the
    /// caller's own Cookie field stays.
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

    /// What the session would send by itself.
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

    /// A storage returns its cookies in no particular order.
    private static func pairs(in field: String) -> Set<String> {
        Set(field.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) })
    }
}
