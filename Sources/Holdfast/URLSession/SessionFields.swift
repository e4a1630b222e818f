// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// The header fields that a session adds below the hooks.
struct SessionFields: Sendable {
    private let additional: HeaderFields
    /// The additional fields that may contain a credential, which must not follow a redirect to another origin.
    let bound: HeaderFields
    private let cookieStorage: HTTPCookieStorage?

    /// Whether the rules of stored cookies are checked here, since Foundation on Linux checks only the host.
    private let checksCookies: Bool

    /// The fields of sessions with this configuration.
    ///
    /// - Parameter choosesCookies: whether this decides which cookies are sent; false if the platform does, and this only says
    ///   which.
    init(_ configuration: URLSessionConfiguration, choosesCookies: Bool = false) {
        checksCookies = choosesCookies
        additional = HeaderFields(SessionFields.texts(configuration.httpAdditionalHeaders))
        var bound = additional
        bound.removeAll { NonCredentialFields.contains($0.name) }
        self.bound = bound
        cookieStorage = configuration.httpShouldSetCookies ? configuration.httpCookieStorage : nil
    }

    /// Session headers as text: Foundation on Linux traps on a value that is not.
    static func texts(_ headers: [AnyHashable: Any]?) -> [String: String] {
        var texts: [String: String] = [:]
        for (name, value) in headers ?? [:] { texts["\(name)"] = "\(value)" }
        return texts
    }

    /// What will be added to `request`; fields that the request has itself are not.
    ///
    /// - Parameters:
    ///   - withStoredCookies: false if the cookies to be sent are already in the request.
    ///   - isForeignHop: whether a redirect has led to another origin than the one where the call began.
    func fields(
        for request: URLRequest,
        withStoredCookies: Bool = true,
        isForeignHop: Bool = false
    ) -> HeaderFields {
        var fields = additional
        if isForeignHop { fields.removeAll { binds($0.name) } }
        fields.removeAll { request.value(forHTTPHeaderField: $0.name.rawName) != nil }
        if withStoredCookies, let cookie = cookie(for: request) {
            fields.removeAll("Cookie")
            fields.append("Cookie", cookie)
        }
        if let credential = credential(in: request), !fields.contains("Authorization") {
            fields.append("Authorization", credential)
        }
        return fields
    }

    /// Whether an additional field stays with the origin where a call began.
    func binds(_ name: FieldName) -> Bool { bound.contains(name) }

    /// The additional fields that must be put into the request if the platform adds none itself; a stored cookie replaces one among
    /// them.
    func boundFields(for request: URLRequest) -> HeaderFields {
        var fields = bound
        fields.removeAll { request.value(forHTTPHeaderField: $0.name.rawName) != nil }
        if fields.contains("Cookie"), cookie(for: request) != nil { fields.removeAll("Cookie") }
        return fields
    }

    /// The stored cookies as a field value; nil if the request has a Cookie field or wants no cookies.
    func cookie(for request: URLRequest) -> String? {
        guard let cookieStorage, request.httpShouldHandleCookies, let url = request.url,
            request.value(forHTTPHeaderField: "Cookie") == nil,
            let stored = cookieStorage.cookies(for: url)
        else { return nil }
        let cookies = checksCookies ? stored.filter { SessionFields.mayGo($0, to: url) } : stored
        guard !cookies.isEmpty else { return nil }
        // A storage returns them in no particular order, and a cache would take each order for another user (RFC 6265 §5.4, step
        // 2).
        let sorted = cookies.sorted { one, other in
            (-one.path.utf8.count, one.name, one.domain) < (-other.path.utf8.count, other.name, other.domain)
        }
        return HTTPCookie.requestHeaderFields(with: sorted)["Cookie"]
    }

    /// RFC 6265 §5.4, step 1, except the host: a secure cookie is sent only over TLS, and none outside its path or after its
    /// expiry.
    private static func mayGo(_ cookie: HTTPCookie, to url: URL) -> Bool {
        if cookie.isSecure, url.scheme?.lowercased() != "https" { return false }
        if cookie.hasEnded { return false }
        // As it is written: `path` drops a slash at the end and decodes escapes (RFC 6265 §5.1.4).
        let written = url.path(percentEncoded: true)
        let path = written.isEmpty ? "/" : written
        return path == cookie.path || path.hasPrefix(cookie.path.hasSuffix("/") ? cookie.path : cookie.path + "/")
    }

    /// Whether the session may send other cookies than ``fields(for:withStoredCookies:)`` and the request say.
    ///
    /// On Apple systems, stored ones may replace a Cookie field of the request.
    func mayReplaceCookies(of request: URLRequest) -> Bool {
        guard request.httpShouldHandleCookies, request.value(forHTTPHeaderField: "Cookie") != nil else { return false }
        var bare = request
        bare.setValue(nil, forHTTPHeaderField: "Cookie")
        return cookie(for: bare) != nil
    }

    /// The Basic credentials that libcurl makes from the user information in a URL; Apple's URLSession waits for a challenge.
    private func credential(in request: URLRequest) -> String? {
        #if canImport(Darwin)
            return nil
        #else
            guard request.value(forHTTPHeaderField: "Authorization") == nil, let url = request.url,
                let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
                parts.user != nil || parts.password != nil
            else { return nil }
            return "Basic " + Data("\(parts.user ?? ""):\(parts.password ?? "")".utf8).base64EncodedString()
        #endif
    }
}

extension HTTPCookie {
    /// Whether its time is over: Max-Age wins over Expires (RFC 6265 §5.3, step 3), but Foundation on Linux ignores it.
    fileprivate var hasEnded: Bool {
        var end = expiresDate
        if let age = (properties?[.maximumAge] as? String).flatMap({ HTTPCookie.maxAge($0) }),
            let created = properties?[HTTPCookiePropertyKey("Created")] as? Double
        {
            end = Date(timeIntervalSinceReferenceDate: created + age)
        }
        return end.map { $0 <= Date() } ?? false
    }

    /// The seconds of a Max-Age, not above zero if it ends the cookie; nil if it must be ignored (RFC 6265 §5.2.2).
    static func maxAge(_ text: String) -> TimeInterval? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        return TimeInterval(text)
    }
}

extension HTTPURLResponse {
    /// Status and fields; Foundation has joined lines of one name.
    package var head: ResponseHead {
        ResponseHead(
            status: StatusCode(statusCode),
            fields: HeaderFields(SessionFields.texts(allHeaderFields))
        )
    }

    /// The length of the content according to Content-Length, if there is one.
    var contentLength: Int? {
        guard let length = Int(exactly: expectedContentLength), length >= 0 else { return nil }
        return length
    }
}

/// Which content codings URLSession decodes by itself, leaving Content-Encoding and Content-Length as they came.
enum ContentCodings {
    #if canImport(Darwin)
        private static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br"]
    #else
        private static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]
    #endif

    /// Whether a response with these values of Content-Encoding (RFC 9110 §8.4) is delivered decoded.
    ///
    /// False if nothing was coded, or if a coding is unknown: then the platform has not changed the content.
    static func areUndone(_ values: [String]) -> Bool {
        var isCoded = false
        for value in values {
            for part in value.split(separator: ",") {
                let coding = part.filter { $0 != " " && $0 != "\t" }.lowercased()
                if coding.isEmpty || coding == "identity" { continue }
                guard known.contains(coding) else { return false }
                isCoded = true
            }
        }
        return isCoded
    }
}

extension HeaderFields {
    /// The fields of a dictionary, sorted by name so that equal dictionaries give equal lines.
    ///
    /// A name that is not a token cannot be a header field (RFC 9110 §5.1) and is left out.
    public init(_ dictionary: [String: String]) {
        var lines: [Line] = []
        lines.reserveCapacity(dictionary.count)
        for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            if let name = FieldName(name) { lines.append(Line(name: name, value: value)) }
        }
        self.init(lines)
    }
}

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
        let values = response.fields.values(of: "Set-Cookie")
        guard !values.isEmpty else { return }
        for value in values {
            var cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
            if isStored { cookies.removeAll { !adds($0, to: storage) } }
            for cookie in cookies { SessionCookies.given.note(Name(cookie), to: storage) }
            storage.setCookies(cookies, for: url, mainDocumentURL: nil)
        }
        #if !canImport(Darwin)
            // Foundation would add those that a Max-Age has ended to the session's next requests.
            for cookie in storage.cookies ?? [] where cookie.hasEnded { storage.deleteCookie(cookie) }
        #endif
    }

    /// Whether a cookie of a stored response is put into the storage; records it.
    private func adds(_ cookie: HTTPCookie, to storage: HTTPCookieStorage) -> Bool {
        let name = Name(cookie)
        let held = storage.cookies?.first { Name($0) == name }?.value
        return additions.values.withLock { values in
            if let held {
                guard values[name] == held else { return false }
            } else if values[name] == nil, SessionCookies.given.contains(name, of: storage) {
                // It was there and is gone: anyone who logged out stays logged out.
                return false
            } else if cookie.hasEnded {
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
