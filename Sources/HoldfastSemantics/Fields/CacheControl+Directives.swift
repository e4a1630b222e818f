// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The directives that Holdfast acts on (RFC 9111 §5.2, RFC 5861, RFC 8246).
extension CacheControl {
    /// A directive that may be limited to some fields (RFC 9111 §5.2.2.4, §5.2.2.7).
    public enum FieldNameForm: Sendable, Hashable {
        /// The directive is not there.
        case absent
        /// It holds for the whole response.
        case unqualified
        /// It holds for these fields only.
        case fields([FieldName])
    }

    /// How much staleness a request accepts (RFC 9111 §5.2.1.2).
    public enum StaleTolerance: Sendable, Hashable {
        /// The directive is not there.
        case absent
        /// Any amount.
        case any
        /// At most this many seconds past the freshness lifetime.
        case seconds(Int64)
    }

    /// 2^31: where delta-seconds saturate (RFC 9111 §1.2.2).
    public static let maximumDeltaSeconds: Int64 = 2_147_483_648

    /// `max-age` in seconds; the smallest of several, 0 (stale) for a malformed one (RFC 9111 §4.2.1).
    public var maxAge: Int64? { strictSeconds("max-age") }

    /// `s-maxage` in seconds, read like ``maxAge``.
    public var sMaxAge: Int64? { strictSeconds("s-maxage") }

    /// `max-stale` of a request; a malformed one counts as absent.
    public var maxStale: StaleTolerance {
        var result = StaleTolerance.absent
        for directive in directives where directive.name == "max-stale" {
            let seconds: Int64
            if let argument = directive.argument {
                guard let parsed = CacheControl.seconds(argument) else { return .absent }
                seconds = parsed
            } else {
                if case .absent = result { result = .any }
                continue
            }
            if case .seconds(let known) = result {
                result = .seconds(min(known, seconds))
            } else {
                result = .seconds(seconds)
            }
        }
        return result
    }

    /// `min-fresh` of a request in seconds: the largest of several, malformed ones ignored.
    public var minFresh: Int64? { validSeconds("min-fresh").max() }

    /// `stale-while-revalidate` in seconds: the smallest of several, nil when any is malformed (RFC 5861 §3).
    public var staleWhileRevalidate: Int64? { allowance("stale-while-revalidate") }

    /// `stale-if-error` in seconds, read like ``staleWhileRevalidate`` (RFC 5861 §4).
    public var staleIfError: Int64? { allowance("stale-if-error") }

    /// `no-store`.
    public var noStore: Bool { has("no-store") }

    /// `no-cache`, whole or for some fields; a malformed list counts as unqualified.
    public var noCache: FieldNameForm { fieldNames("no-cache") }

    /// `private`, whole or for some fields; a malformed list counts as unqualified.
    public var `private`: FieldNameForm { fieldNames("private") }

    /// `public`; with an argument, which it cannot have, it grants nothing.
    public var `public`: Bool { grants("public") }

    /// `must-revalidate`.
    public var mustRevalidate: Bool { has("must-revalidate") }

    /// `proxy-revalidate`.
    public var proxyRevalidate: Bool { has("proxy-revalidate") }

    /// `must-understand`, which may lift a no-store (RFC 9111 §5.2.2.3); with an argument it counts as absent.
    public var mustUnderstand: Bool { grants("must-understand") }

    /// `immutable` (RFC 8246); with an argument, which it cannot have, it grants nothing.
    public var immutable: Bool { grants("immutable") }

    /// `no-transform`.
    public var noTransform: Bool { has("no-transform") }

    /// `only-if-cached` of a request (RFC 9111 §5.2.1.7).
    public var onlyIfCached: Bool { has("only-if-cached") }

    /// Whether `s-maxage` stands there with nothing but numbers, so that it may release a response for all (RFC 9111 §3.5).
    var hasValidSharedMaxAge: Bool { allowance("s-maxage") != nil }

    private func has(_ name: String) -> Bool {
        directives.contains { $0.name == name }
    }

    /// Like `has`, for directives that widen what a cache may do: every occurrence must be well formed.
    func grants(_ name: String) -> Bool {
        var isPresent = false
        for directive in directives where directive.name == name {
            guard directive.argument == nil else { return false }
            isPresent = true
        }
        return isPresent
    }

    private static func seconds(_ argument: String) -> Int64? {
        FieldScanner.number(argument.utf8, limit: maximumDeltaSeconds)
    }

    private func validSeconds(_ name: String) -> [Int64] {
        directives.compactMap { $0.name == name ? $0.argument.flatMap(CacheControl.seconds) : nil }
    }

    private func strictSeconds(_ name: String) -> Int64? {
        var smallest: Int64?
        for directive in directives where directive.name == name {
            let seconds = directive.argument.flatMap(CacheControl.seconds) ?? 0
            smallest = min(smallest ?? seconds, seconds)
        }
        return smallest
    }

    private func allowance(_ name: String) -> Int64? {
        var smallest: Int64?
        for directive in directives where directive.name == name {
            guard let seconds = directive.argument.flatMap(CacheControl.seconds) else { return nil }
            smallest = min(smallest ?? seconds, seconds)
        }
        return smallest
    }

    private func fieldNames(_ name: String) -> FieldNameForm {
        var names: [FieldName] = []
        var isPresent = false
        for directive in directives where directive.name == name {
            isPresent = true
            guard let argument = directive.argument else { return .unqualified }
            let members = FieldScanner.members(of: argument)
            let valid = members.compactMap { FieldName($0) }
            // "*" is a token, so it could name a field, but who writes it means all of them.
            guard !valid.isEmpty, valid.count == members.count, !valid.contains("*") else { return .unqualified }
            names += valid
        }
        return isPresent ? .fields(names) : .absent
    }
}
