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

extension BuiltRequest {
    /// The same request to another URL, as after a 307 (RFC 9110 §15.4); nil if it cannot be sent again.
    ///
    /// - credentialFields: the fields to remove, besides Authorization and Cookie, if the origin changes.
    func redirected(
        to url: URL,
        withholding credentialFields: [FieldName]
    ) -> (request: BuiltRequest, isForeign: Bool)? {
        guard body.isReplayable, let text = urlRequest.url?.absoluteString, let target = try? TargetURI(text) else {
            return nil
        }
        let head = RequestHead(
            method: RequestMethod(rawValue: urlRequest.httpMethod ?? "GET"),
            target: target,
            fields: HeaderFields(urlRequest.allHTTPHeaderFields ?? [:])
        )
        let answer = ResponseHead(status: .temporaryRedirect, fields: ["Location": url.absoluteString])
        guard let redirection = Redirection.next(after: answer, to: head) else { return nil }
        var following = self
        following.urlRequest.url = URL(string: redirection.location)
        following.urlRequest.leaveBehind(redirection, from: head.fields, credentialFields: credentialFields)
        return (following, redirection.crossesOrigin)
    }
}
