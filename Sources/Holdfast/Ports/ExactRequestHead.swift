// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastSemantics

#if canImport(FoundationNetworking)
    package import Foundation
    package import FoundationNetworking
#else
    public import Foundation
#endif

/// The method and the target of a request exactly as they arrived, for cases where URLRequest and URL would rewrite them.
///
/// Foundation writes `get` as `GET` and escapes characters that a URL may not contain; a proxy has to pass on what it was given
/// (RFC 9110 §9.1, §7.6). Set it as ``CallOptions/exactHead`` of a call that sends the request from ``makeRequest()``: caches
/// use it, and transports send it if they can. It applies to that request only: it is dropped for a hop if a hook changes URL
/// or method, or after a redirect.
package struct ExactRequestHead: Sendable, Hashable {
    /// The method as it arrived.
    package let method: RequestMethod
    /// The target as it is sent after the method: origin-form, or `*` (RFC 9112 §3.2).
    package let requestTarget: String
    /// The URI that is requested, which caches use as the key; for `*`, that of the origin itself (RFC 9110 §7.1).
    package let target: TargetURI
    /// The URL that the URLRequest has instead of the target.
    package let url: URL

    /// Whether the request from ``makeRequest()`` has the same method and target, so that it contains everything in this head.
    let isShown: Bool
    private let shownMethod: String

    /// A head made of these parts.
    ///
    /// - Parameters:
    ///   - method: any token.
    ///   - origin: scheme and authority without a trailing slash, such as `http://example.com:8080`.
    ///   - requestTarget: origin-form, or `*`. Characters that a URI may not contain there, including a "%" that does not begin
    ///     an escape, are passed on as they are; for the key, they count as if they had been percent-encoded.
    /// - Throws: ``ServiceError`` `.badRequest` if origin and target do not make an http or https URI, or the target contains
    ///   white space or control characters, which would end the request line.
    package init(method: RequestMethod, origin: String, requestTarget: String) throws(ServiceError) {
        let isAsterisk = requestTarget == "*"
        guard isAsterisk || requestTarget.utf8.first == UInt8(ascii: "/"),
            requestTarget.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            RequestMethod(validating: method.rawValue) != nil,
            let target = try? TargetURI(tolerating: origin + (isAsterisk ? "/" : requestTarget)),
            let url = URL(string: target.canonical)
        else {
            throw ServiceError(
                .badRequest,
                "The request line has no valid method and http or https target; send a token and a path."
            )
        }
        self.method = method
        self.requestTarget = requestTarget
        self.target = target
        self.url = url
        var shown = URLRequest(url: url)
        shown.httpMethod = method.rawValue
        shownMethod = shown.httpMethod ?? method.rawValue
        isShown = shownMethod == method.rawValue && origin + requestTarget == url.absoluteString
    }

    /// A request for this head, without fields and content.
    package func makeRequest() -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = shownMethod
        return request
    }

    /// Whether this head still belongs to a request.
    func stands(for request: URLRequest) -> Bool {
        request.httpMethod == shownMethod && request.url == url
    }
}

extension CallContext {
    /// The exact method and target to send for a request; nil if they are the request's own.
    ///
    /// - Parameter request: the request as it reached the transport.
    package func exactHead(for request: URLRequest) -> ExactRequestHead? {
        guard let exact = options.exactHead, exact.stands(for: request) else { return nil }
        return exact
    }

    /// The method that a request is sent with.
    func method(of request: URLRequest) -> RequestMethod {
        exactHead(for: request)?.method ?? RequestMethod(request)
    }

    /// The head that a request is sent with; nil if its URL is not a valid http or https URI.
    ///
    /// - Parameter fields: the fields that are sent; by default the request's own.
    func head(of request: URLRequest, fields: HeaderFields? = nil) -> RequestHead? {
        guard let exact = exactHead(for: request) else { return RequestHead(request, fields: fields) }
        return RequestHead(
            method: exact.method,
            target: exact.target,
            fields: fields ?? HeaderFields(request.allHTTPHeaderFields ?? [:])
        )
    }
}
