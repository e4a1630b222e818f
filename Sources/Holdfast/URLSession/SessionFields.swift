// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
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
        if let end = cookie.expiresDate, end <= Date() { return false }
        let path = url.path.isEmpty ? "/" : url.path
        return path == cookie.path || path.hasPrefix(cookie.path.hasSuffix("/") ? cookie.path : cookie.path + "/")
    }

    /// Whether the session may send other cookies than ``fields(for:withStoredCookies:)`` and the request say.
    ///
    /// Stored ones replace a Cookie field of the request: always on Linux, possibly on Apple systems. Foundation on Linux also
    /// sends them if a request wants none.
    func mayReplaceCookies(of request: URLRequest) -> Bool {
        #if canImport(Darwin)
            guard request.httpShouldHandleCookies else { return false }
        #endif
        var bare = request
        bare.setValue(nil, forHTTPHeaderField: "Cookie")
        bare.httpShouldHandleCookies = true
        return cookie(for: bare) != nil
            && (request.value(forHTTPHeaderField: "Cookie") != nil || !request.httpShouldHandleCookies)
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

extension HTTPURLResponse {
    /// Status and fields; Foundation has joined lines of one name.
    var head: ResponseHead {
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
