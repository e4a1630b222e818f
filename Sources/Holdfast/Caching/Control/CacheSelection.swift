// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Which stored responses are meant: to be removed, marked, pinned or released by an ``HTTPCache``.
///
/// A selection reaches all partitions and all variants, but for those that name one principal. Every form looks at each entry
/// of the store once.
public struct CacheSelection: Sendable {
    enum Form: Sendable {
        case all
        case uri(TargetURI?)
        case prefix(TargetURI?)
        case tag(String)
        case principal(String)
        case credentials(HeaderFields, userinfo: String?, credentialFields: [FieldName])
        case olderThan(Duration)
        case matching(@Sendable (CacheEntryInfo) -> Bool)
    }

    let form: Form

    /// Every stored response.
    public static let all = CacheSelection(form: .all)

    /// The stored responses of one URL, compared in canonical form (RFC 9110 §4.2.3), and those that answer for it by their
    /// No-Vary-Search.
    ///
    /// - Parameter url: its fragment and userinfo count for nothing; no http or https URI selects nothing.
    public static func url(_ url: URL) -> CacheSelection {
        CacheSelection(form: .uri(target(url)))
    }

    /// The stored responses of a URL and of everything beneath it, compared in canonical form.
    ///
    /// The prefix ends where a part of a URI ends: `https://a.example/img` takes `/img`, `/img/1` and `/img?w=2`, and not
    /// `/imgs`; `https://a.example/img/` takes what is beneath alone; `https://a.example` takes the origin. With a query,
    /// `/img?w=2` takes `/img?w=2` and `/img?w=2&h=3`, and not `/img?w=20`.
    ///
    /// - Parameter url: as in ``url(_:)``.
    public static func prefix(_ url: URL) -> CacheSelection {
        CacheSelection(form: .prefix(target(url)))
    }

    /// The stored responses of calls that named this tag (``CallOptions/tags``).
    public static func tag(_ tag: String) -> CacheSelection {
        CacheSelection(form: .tag(tag))
    }

    /// The stored responses of one principal's own partition, for a logout.
    ///
    /// - Parameter name: what the calls gave as ``CallOptions/principal``.
    public static func principal(_ name: String) -> CacheSelection {
        CacheSelection(form: .principal(name))
    }

    /// The stored responses of the partition that a request's credentials name: Authorization, Cookie, userinfo and the fields
    /// named here. Cookies that the cache ignores (`CacheOptions.ignoredCookies`) name none.
    ///
    /// - Parameters:
    ///   - request: a request as it reaches the cache, with the credentials that the hooks above it add. One without any selects
    ///     nothing, and never what belongs to everyone.
    ///   - implicit: what the transport adds, as `pipeline.implicitFields(for: request)` tells; none by default.
    ///   - credentialFields: what the calls gave as ``CallOptions/credentialFields``; none by default.
    public static func principal(
        of request: URLRequest,
        adding implicit: HeaderFields = [:],
        credentialFields: [FieldName] = []
    ) -> CacheSelection {
        let fields = implicit.merging(HeaderFields(request.allHTTPHeaderFields ?? [:]))
        let userinfo = request.url.flatMap(target)?.userinfo
        return CacheSelection(
            form: .credentials(fields, userinfo: userinfo, credentialFields: credentialFields)
        )
    }

    /// The stored responses whose age (RFC 9111 §4.2.3) is greater than `age`, fresh or not.
    public static func olderThan(_ age: Duration) -> CacheSelection {
        CacheSelection(form: .olderThan(age))
    }

    /// The stored responses for which `predicate` holds.
    ///
    /// - Parameter predicate: must be quick and must not call the cache. It is asked about responses that are still being
    ///   stored as well, whose body length is not known yet and shown as 0.
    public static func matching(_ predicate: @escaping @Sendable (CacheEntryInfo) -> Bool) -> CacheSelection {
        CacheSelection(form: .matching(predicate))
    }

    private static func target(_ url: URL) -> TargetURI? {
        try? TargetURI(url.absoluteString)
    }
}

extension HTTPCache {
    /// The selection as a question about one entry.
    func predicate(of selection: CacheSelection, now: Timestamp) -> @Sendable (StoredEntry) -> Bool {
        switch selection.form {
        case .all:
            return { _ in true }
        case .uri(let target):
            guard let target = target.map(options.keyTarget) else { return { _ in false } }
            return isOf(target)
        case .prefix(let prefix):
            guard let prefix else { return { _ in false } }
            return { CacheKey.Parts(framed: $0.key.bytes).map { prefix.isPrefix(of: $0.target) } ?? false }
        case .tag(let tag):
            return { $0.description.tags.contains(tag) }
        case .principal(let name):
            return isOf(
                CachePrincipal.digest(of: HeaderFields(), userinfo: nil, explicit: name, secret: store.secret)
            )
        case .credentials(let fields, let userinfo, let credentialFields):
            return isOf(
                CachePrincipal.digest(
                    of: view(of: fields),
                    userinfo: userinfo,
                    credentialFields: credentialFields,
                    secret: store.secret
                )
            )
        case .olderThan(let age):
            let seconds = age.wholeSeconds
            return { [decoded] entry in
                decoded.response(of: entry).map { $0.currentAge(now: now) > seconds } ?? false
            }
        case .matching(let predicate):
            return { [decoded, options] entry in
                decoded.response(of: entry).map { predicate(CacheEntryInfo(entry, $0, options, now: now)) } ?? false
            }
        }
    }

    private func isOf(_ partition: String) -> @Sendable (StoredEntry) -> Bool {
        // The anonymous partition is nobody's own.
        guard !partition.isEmpty else { return { _ in false } }
        return { CacheKey.Parts(framed: $0.key.bytes)?.partition == partition }
    }

    private func isOf(_ target: TargetURI) -> @Sendable (StoredEntry) -> Bool {
        guard holdsSearchVariance else { return { CacheKey.Parts(framed: $0.key.bytes)?.target == target.canonical } }
        return { [decoded] entry in
            guard let text = CacheKey.Parts(framed: entry.key.bytes)?.target else { return false }
            if text == target.canonical { return true }
            // A response that answers for this URI too is stored under another one.
            guard let stored = try? TargetURI(text), stored.isSameOrigin(as: target), stored.path == target.path,
                let response = decoded.response(of: entry)
            else { return false }
            return NoVarySearch(response.head.fields).isEquivalent(stored, target)
        }
    }
}
