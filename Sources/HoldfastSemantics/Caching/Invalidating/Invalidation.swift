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

    /// The URIs whose stored responses must be invalidated.
    ///
    /// Errors invalidate nothing, and neither do locations at
    /// another origin, which could otherwise be used to empty other sites' entries.
    ///
    /// - Parameters:
    ///   - request: the request that was sent.
    ///   - response: its final response.
    /// - Returns: the target first, then Location and Content-Location where they name something else; empty when nothing
    ///   is to be done.
    public static func targets(request: RequestHead, response: ResponseHead) -> [TargetURI] {
        guard applies(request: request, response: response) else { return [] }
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
    /// - Returns: the target, or nothing where the method is safe or nothing can have reached the origin.
    public static func targets(request: RequestHead, failure: AttemptFailure, wasSent: Bool) -> [TargetURI] {
        guard wasSent, !request.method.isSafe, failure.progress > .notSent else { return [] }
        return [request.target]
    }

    /// A response has one Location and one Content-Location; more lines than that are an attack or a mistake.
    private static let maximumTargets = 8
}
