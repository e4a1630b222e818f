// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a response to an unsafe request invalidates (RFC 9111 §4.4).
package enum Invalidation {
    /// Whether stored responses may no longer be valid after this response: the method is unsafe, and the response is not an error.
    ///
    /// - Parameters:
    ///   - request: the request that was sent; a method that is not known to be safe counts as unsafe.
    ///   - response: its final response.
    package static func applies(request: RequestHead, response: ResponseHead) -> Bool {
        guard !request.method.isSafe else { return false }
        return response.status.isSuccessful || response.status.isRedirection
    }

    /// Whether an unsafe request may have been applied although no response says so.
    ///
    /// Without a response, anything sent may have arrived, and a gateway that answers 502 or 504 knows no more than that. Any other
    /// response is the origin's own.
    package static func isAmbiguous(_ outcome: AttemptOutcome) -> Bool {
        switch outcome {
        case .failure(let failure): failure.progress > .notSent
        case .response(let head): head.status == .badGateway || head.status == .gatewayTimeout
        }
    }

    /// The URIs whose stored responses must be invalidated.
    ///
    /// Errors invalidate nothing, unless an earlier attempt or a gateway leaves open what was applied. Locations at another origin
    /// are ignored too: they could be used to remove other sites' entries.
    ///
    /// - Parameters:
    ///   - request: the request that was sent.
    ///   - response: its final response.
    ///   - mayBeApplied: whether an attempt was ambiguous; false by default.
    /// - Returns: the target first, then Location and Content-Location if they are different URIs; empty if there is nothing to do.
    package static func targets(
        request: RequestHead,
        response: ResponseHead,
        mayBeApplied: Bool = false
    ) -> [TargetURI] {
        guard applies(request: request, response: response) else {
            return mayBeApplied && !request.method.isSafe ? [request.target] : []
        }
        var targets = [request.target]
        for line in response.fields where line.name == .location || line.name == .contentLocation {
            // Encoded as for a redirect, or what is followed would be another URI than what is invalidated.
            guard !line.value.isEmpty,
                let target = request.target.resolving(URIReference.mapped(line.value, isTolerant: true)),
                target.isSameOrigin(as: request.target), !targets.contains(target),
                targets.count < maximumTargets
            else { continue }
            targets.append(target)
        }
        return targets
    }

    /// The URIs whose stored responses an unsafe request may have invalidated although no response arrived.
    ///
    /// A request that may have reached the origin may have been applied, so it counts as applied.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - failure: how it failed.
    ///   - wasSent: whether an attempt had begun.
    ///   - mayBeApplied: whether an earlier attempt was ambiguous; false by default.
    /// - Returns: the target; empty if the method is safe, or if nothing can have reached the origin.
    package static func targets(
        request: RequestHead,
        failure: AttemptFailure,
        wasSent: Bool,
        mayBeApplied: Bool = false
    ) -> [TargetURI] {
        guard !request.method.isSafe, mayBeApplied || wasSent && failure.progress > .notSent else { return [] }
        return [request.target]
    }

    /// A response has one Location and one Content-Location; more are an attack or a mistake.
    private static let maximumTargets = 8
}

/// The Clear-Site-Data field: what an origin asks clients to forget (W3C Clear Site Data §3.1).
///
/// A comma-separated list of quoted types. Members that are not quoted strings are ignored; types are case-sensitive.
package struct ClearSiteData: Sendable, Hashable {
    /// The types in order, including duplicates and unknown ones, without quotes.
    package let types: [String]

    /// Reads the field of a response, line by line; linear time.
    ///
    /// - Parameter fields: the response's fields; there are no types if the field is missing.
    package init(_ fields: HeaderFields) {
        types = fields.values(of: .clearSiteData).flatMap { ClearSiteData.types(in: $0) }
    }

    /// Whether all stored responses of the target's origin must be removed: `"cache"` or `"*"` from a secure origin.
    ///
    /// - Parameter target: the target URI of the response. The field counts only for https, since otherwise anyone on the path
    ///   could have added it.
    package func clearsCache(of target: TargetURI) -> Bool {
        target.scheme == "https" && types.contains { $0 == "cache" || $0 == "*" }
    }

    private static func types(in value: String) -> [String] {
        FieldScanner.members(of: value).compactMap { member in
            var scanner = FieldScanner(member)
            let type = scanner.quotedString()
            return scanner.isAtEnd ? type : nil
        }
    }
}
