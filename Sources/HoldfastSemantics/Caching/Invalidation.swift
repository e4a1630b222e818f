// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a response to an unsafe request makes invalid (RFC 9111 §4.4).
public enum Invalidation {
    /// Whether a response says that stored responses may no longer hold: an unsafe method, and no error.
    ///
    /// - Parameters:
    ///   - request: the request that was sent; a method that is not known to be safe counts as unsafe.
    ///   - response: its final response.
    public static func applies(request: RequestHead, response: ResponseHead) -> Bool {
        guard !request.method.isSafe else { return false }
        return response.status.isSuccessful || response.status.isRedirection
    }

    /// Whether an attempt ended so that an unsafe request may have been applied although nobody says so.
    ///
    /// Without an answer whatever left this machine may have arrived, and a gateway that says 502 or 504 knows no more than
    /// that. Any other response is the origin's own word.
    public static func isAmbiguous(_ outcome: AttemptOutcome) -> Bool {
        switch outcome {
        case .failure(let failure): failure.progress > .notSent
        case .response(let head): head.status == .badGateway || head.status == .gatewayTimeout
        }
    }

    /// The URIs whose stored responses must be invalidated.
    ///
    /// Errors invalidate nothing, unless an attempt before or a gateway leaves open what was applied. Neither do locations
    /// at another origin, which could otherwise be used to empty other sites' entries.
    ///
    /// - Parameters:
    ///   - request: the request that was sent.
    ///   - response: its final response.
    ///   - mayBeApplied: whether an attempt was ambiguous; false by default.
    /// - Returns: the target first, then Location and Content-Location where they name something else; empty when nothing
    ///   is to be done.
    public static func targets(
        request: RequestHead,
        response: ResponseHead,
        mayBeApplied: Bool = false
    ) -> [TargetURI] {
        guard applies(request: request, response: response) else {
            return mayBeApplied && !request.method.isSafe ? [request.target] : []
        }
        var targets = [request.target]
        for line in response.fields where line.name == .location || line.name == .contentLocation {
            guard !line.value.isEmpty, let target = request.target.resolving(line.value),
                target.isSameOrigin(as: request.target), !targets.contains(target),
                targets.count < maximumTargets
            else { continue }
            targets.append(target)
        }
        return targets
    }

    /// The URIs whose stored responses an unsafe request may have made invalid although no response came.
    ///
    /// A request that may have reached the origin may have been applied, so it counts as applied.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - failure: how it failed.
    ///   - wasSent: whether an attempt had begun.
    ///   - mayBeApplied: whether an earlier attempt was ambiguous; false by default.
    /// - Returns: the target, or nothing where the method is safe or nothing can have reached the origin.
    public static func targets(
        request: RequestHead,
        failure: AttemptFailure,
        wasSent: Bool,
        mayBeApplied: Bool = false
    ) -> [TargetURI] {
        guard !request.method.isSafe, mayBeApplied || wasSent && failure.progress > .notSent else { return [] }
        return [request.target]
    }

    /// A response has one Location and one Content-Location; more lines than that are an attack or a mistake.
    private static let maximumTargets = 8
}

/// The Clear-Site-Data field: what an origin asks clients to forget (W3C Clear Site Data §3.1).
///
/// A comma list of quoted types. Members that are no quoted string are left out; types compare with their letter case.
public struct ClearSiteData: Sendable, Hashable {
    /// The types in order, duplicates and unknown ones included, quotes removed.
    public let types: [String]

    /// Reads the field of a response, line by line; linear time.
    ///
    /// - Parameter fields: the response's fields; no type comes out where the field is missing.
    public init(_ fields: HeaderFields) {
        types = fields.values(of: .clearSiteData).flatMap { ClearSiteData.types(in: $0) }
    }

    /// Whether all stored responses of the target's origin must go: `"cache"` or `"*"` from a secure origin.
    ///
    /// - Parameter target: the target URI of the response. The field means something for https only, since anyone on the
    ///   way could have added it otherwise.
    public func clearsCache(of target: TargetURI) -> Bool {
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
