// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The request that a redirect asks for (RFC 9110 §15.4).
///
/// A pure interpretation of one response; the pipeline decides whether and how often to follow.
package struct Redirection: Sendable, Hashable {
    /// Where the next request goes.
    package let target: TargetURI

    /// The resolved Location as it must be sent: without userinfo and fragment, and with what a URI must not contain encoded;
    /// otherwise in the server's spelling.
    package let location: String

    /// The method of the next request.
    package let method: RequestMethod

    /// Whether the next request has the content of this one.
    package let keepsBody: Bool

    /// Whether the next request goes to another scheme, host or port, so that it must not have the credentials.
    package let crossesOrigin: Bool

    private let changesMethod: Bool

    /// Interprets a response as a redirect.
    ///
    /// 301 and 302 turn POST into GET, 303 turns everything but HEAD into GET, 307 and 308 change nothing. 300 is followed only for
    /// GET and HEAD. What is not allowed in a URI is percent-encoded after the authority, as browsers do it; several different
    /// Location lines count as none.
    ///
    /// - Parameters:
    ///   - response: the response as received.
    ///   - request: its request.
    /// - Returns: nil if the response must be returned to the caller: it is not a redirect, has no usable Location, its target is
    ///   not http or https, or it leads to another origin and the request's condition protects what happens there: any condition
    ///   of an unsafe method, If-Match and If-Unmodified-Since of any.
    package static func next(after response: ResponseHead, to request: RequestHead) -> Redirection? {
        var method = request.method
        var keepsBody = true
        switch response.status.rawValue {
        case 300:
            guard method == .get || method == .head else { return nil }
        case 301, 302:
            if method == .post {
                method = .get
                keepsBody = false
            }
        case 303:
            if method != .head { method = .get }
            keepsBody = false
        case 307, 308:
            break
        default:
            return nil
        }
        guard let resolved = resolve(response.fields, against: request.target) else { return nil }
        let crossesOrigin = !resolved.target.isSameOrigin(as: request.target)
        // A validator means nothing to another origin, and without its condition a write could overwrite anything.
        if crossesOrigin, method == request.method,
            request.asksOrigin
                || !method.isSafe && request.fields.contains(where: { RequestHead.conditionalNames.contains($0.name) })
        {
            return nil
        }
        return Redirection(
            target: resolved.target,
            location: resolved.text,
            method: method,
            keepsBody: keepsBody,
            crossesOrigin: crossesOrigin,
            changesMethod: method != request.method
        )
    }

    /// The fields of the next request, derived from those of this one.
    ///
    /// Across origins, this removes the credentials, the idempotency key, the caller's conditions, Host and Origin. With the
    /// method, the conditions and Range lose their meaning. If the content is dropped, every field that describes it is dropped too
    /// (RFC 9110 §15.4 step 5).
    ///
    /// - Parameter fields: the fields of the request that was redirected.
    /// - Returns: the remaining lines in order.
    package func fields(from fields: HeaderFields) -> HeaderFields {
        var kept = fields
        if crossesOrigin { kept.removeAll { Redirection.originBound.contains($0.name) } }
        if crossesOrigin || changesMethod {
            // A Range without its If-Range could bring bytes of another representation.
            let dropsRange = changesMethod || fields.contains(.ifRange)
            kept.removeAll { RequestHead.conditionalNames.contains($0.name) || dropsRange && $0.name == .range }
        }
        if !keepsBody {
            kept.removeAll { line in
                line.name.canonicalName.hasPrefix("content-") || Redirection.contentBound.contains(line.name)
            }
        }
        return kept
    }

    private static let originBound: Set<FieldName> = [
        .authorization, .cookie, .proxyAuthorization, .idempotencyKey, .host, "Origin",
    ]

    private static let contentBound: Set<FieldName> = [
        .transferEncoding, .trailer, .expect, .idempotencyKey, .lastModified, "Digest", "Repr-Digest",
    ]

    private static func resolve(_ fields: HeaderFields, against base: TargetURI) -> (target: TargetURI, text: String)? {
        let locations = Set(fields.values(of: .location))
        guard locations.count == 1, let location = locations.first, !location.isEmpty else { return nil }
        let text = URIReference(URIReference.mapped(location, isTolerant: true)).resolved(against: base)
        guard let target = try? TargetURI(text) else { return nil }
        return (target, text)
    }
}
