// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The request that a redirect asks for (RFC 9110 §15.4).
///
/// A pure interpretation of one response; the pipeline decides whether and how often to follow.
package struct Redirection: Sendable, Hashable {
    /// Where the next request goes.
    package let target: TargetURI

    /// The resolved Location as it must be sent: without userinfo and fragment, otherwise in the server's spelling.
    package let location: String

    /// The method of the next request.
    package let method: RequestMethod

    /// Whether the next request has the content of this one.
    package let keepsBody: Bool

    /// Whether the next request goes to another scheme, host or port, so that it must not have the credentials.
    package let crossesOrigin: Bool

    /// Interprets a response as a redirect.
    ///
    /// 301 and 302 turn POST into GET, 303 turns everything but HEAD into GET, 307 and 308 change nothing. 300 is followed only for
    /// GET and HEAD. A Location that is an IRI is mapped to a URI first; several different Location lines count as none.
    ///
    /// - Parameters:
    ///   - response: the response as received.
    ///   - request: its request.
    /// - Returns: nil if the response must be returned to the caller: it is not a redirect, has no usable Location, or its target
    ///   is not http or https.
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
        return Redirection(
            target: resolved.target,
            location: resolved.text,
            method: method,
            keepsBody: keepsBody,
            crossesOrigin: !resolved.target.isSameOrigin(as: request.target)
        )
    }

    /// The fields of the next request, derived from those of this one.
    ///
    /// Across origins, this removes the credentials, the idempotency key, the caller's conditions and Host. If the content is
    /// dropped, every field that describes it is dropped too (RFC 9110 §15.4 step 5).
    ///
    /// - Parameter fields: the fields of the request that was redirected.
    /// - Returns: the remaining lines in order.
    package func fields(from fields: HeaderFields) -> HeaderFields {
        var kept = fields
        if crossesOrigin {
            kept.removeAll { line in
                Redirection.originBound.contains(line.name) || RequestHead.conditionalNames.contains(line.name)
            }
        }
        if !keepsBody {
            kept.removeAll { line in
                line.name.canonicalName.hasPrefix("content-") || Redirection.contentBound.contains(line.name)
            }
        }
        return kept
    }

    private static let originBound: Set<FieldName> = [
        .authorization, .cookie, .proxyAuthorization, .idempotencyKey, .host,
    ]

    private static let contentBound: Set<FieldName> = [.transferEncoding, .trailer, .expect, .idempotencyKey]

    private static func resolve(_ fields: HeaderFields, against base: TargetURI) -> (target: TargetURI, text: String)? {
        let locations = Set(fields.values(of: .location))
        guard locations.count == 1, let location = locations.first, !location.isEmpty else { return nil }
        for spelling in [location, URIReference.mapped(location)] {
            let text = URIReference(spelling).resolved(against: base)
            if let target = try? TargetURI(text) { return (target, text) }
        }
        return nil
    }
}
