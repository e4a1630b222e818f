// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Rules by route for a cache, in order: **only the first rule that matches applies**.
///
/// Set them as ``CacheOptions/rules``, or read them from a file with ``init(json:)``. Settings for keys
/// (``CacheRule/keyFields``, ``CacheRule/query``, ``CacheRule/ignoredCookies``, ``CacheRule/content``,
/// ``CacheRule/cachesPost``) are needed before there is a response, so they come from the first matching rule without content
/// types. The others come from the first rule that matches request and response. So put special rules before general ones.
///
/// Rules change only what the cache does, never what is sent. They are not stored with responses: a response is used by the
/// rules of the cache that reads it. Responses stored under other settings for keys are not found.
public struct CacheRules: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// The rules, of which the first one that matches applies.
    public var rules: [CacheRule]

    /// Rules in this order; none by default.
    public init(_ rules: [CacheRule] = []) {
        self.rules = rules
    }

    /// Rules in this order.
    public init(arrayLiteral rules: CacheRule...) {
        self.rules = rules
    }
}

/// The rules of a cache, together with what follows from them and its other options; one for all copies of the options.
final class CacheRuleTable: Sendable, Hashable {
    let rules: CacheRules
    /// The cookies that count for nothing, by rule.
    let ignored: [IgnoredCookies]
    let hasKeyFields: Bool
    private let hasContentTypes: Bool

    /// - Parameter ignored: the cookies that the cache ignores anyway.
    init(_ rules: CacheRules, ignored: IgnoredCookies) {
        self.rules = rules
        self.ignored = rules.rules.map {
            $0.ignoredCookies.isEmpty ? ignored : IgnoredCookies(names: ignored.names + $0.ignoredCookies)
        }
        hasKeyFields = rules.rules.contains { !$0.keyFields.isEmpty }
        hasContentTypes = rules.rules.contains { !$0.contentTypes.isEmpty }
    }

    /// The place of the rule that tells how the keys for a target are made.
    func keyRule(for target: TargetURI) -> Int? {
        let route = Route(target)
        return rules.rules.firstIndex { $0.contentTypes.isEmpty && $0.matches(route) }
    }

    /// The rule that tells what becomes of a response.
    func responseRule(for target: TargetURI, fields: HeaderFields) -> CacheRule? {
        let route = Route(target)
        let value = hasContentTypes ? fields[.contentType] : nil
        let type = value.map { CanonicalContentType($0).essence } ?? ""
        return rules.rules.first { $0.matches(contentType: type) && $0.matches(route) }
    }

    /// Whether nothing that is stored can be used for a target, whatever its content type.
    func neverStores(_ target: TargetURI) -> Bool {
        let route = Route(target)
        return rules.rules.first { $0.matches(route) }.map { $0.neverStore && $0.contentTypes.isEmpty } ?? false
    }

    static func == (left: CacheRuleTable, right: CacheRuleTable) -> Bool {
        left === right || left.rules == right.rules && left.ignored == right.ignored
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(rules)
    }
}

/// The one place where rules become options.
extension CacheOptions {
    /// These options as the rules have them for one response; nil where there are no rules, so that nothing is copied.
    ///
    /// What judges a response asks this first, and goes by what it is given. The result has no rules.
    @inline(__always)
    func ruled(for stored: StoredResponse) -> CacheOptions? {
        ruleTable == nil ? nil : ruled(for: stored.target, fields: stored.head.fields)
    }

    /// - Parameter fields: those of the response.
    @inline(never)
    func ruled(for target: TargetURI, fields: HeaderFields) -> CacheOptions? {
        guard let ruleTable else { return nil }
        var options = self
        options.ruleTable = nil
        if let index = ruleTable.keyRule(for: target) {
            options.ignored = ruleTable.ignored[index]
            options.query = ruleTable.rules.rules[index].query ?? query
        }
        if let rule = ruleTable.responseRule(for: target, fields: fields) {
            options.neverStores = rule.neverStore
            // Each of the two takes the place of both: the rule is what counts for its route.
            if rule.lifetime != nil || rule.fixedLifetime != nil {
                options.defaultLifetime = rule.lifetime
                options.fixedLifetime = rule.fixedLifetime
            }
            options.staleIfError = rule.staleIfError ?? staleIfError
            options.staleWhileRevalidate = rule.staleWhileRevalidate ?? staleWhileRevalidate
        }
        return options
    }

    /// The rule that tells how the keys for a target are made; nil where none does.
    package func keyRule(for target: TargetURI) -> CacheRule? {
        guard let ruleTable else { return nil }
        return ruleTable.keyRule(for: target).map { ruleTable.rules.rules[$0] }
    }

    /// The URI that is part of the keys of a target.
    package func keyTarget(of target: TargetURI) -> TargetURI {
        (keyRule(for: target)?.query ?? query).applied(to: target)
    }

    /// The cookies that count for nothing in requests to a target and in their responses.
    package func ignoredCookies(for target: TargetURI) -> IgnoredCookies {
        guard let ruleTable, let index = ruleTable.keyRule(for: target) else { return ignored }
        return ruleTable.ignored[index]
    }

    /// All the ways in which cookies are ignored, each once.
    package var allIgnoredCookies: [IgnoredCookies] {
        guard let ruleTable else { return [ignored] }
        var known: Set<IgnoredCookies> = [ignored]
        return [ignored] + ruleTable.ignored.filter { known.insert($0).inserted }
    }

    /// Whether a rule keeps a target's requests away from what is stored, whatever that is.
    package func neverStores(_ target: TargetURI) -> Bool {
        ruleTable?.neverStores(target) ?? false
    }

    /// Whether a rule keeps a stored response from being used.
    func neverStores(_ stored: StoredResponse) -> Bool {
        ruleTable != nil && ruled(for: stored)?.neverStores ?? false
    }

    /// Whether fields of requests are part of some keys.
    package var hasKeyFields: Bool { ruleTable?.hasKeyFields ?? false }

    /// The fields that are part of the keys of a target.
    package func keyFields(for target: TargetURI) -> [FieldName] {
        hasKeyFields ? keyRule(for: target)?.keyFields ?? [] : []
    }

    /// What the key fields of a request add to its key; "" where there are none.
    ///
    /// A line feed is in no field value, so nothing else is spelled like this. Values may be credentials and are digested.
    ///
    /// - Parameters:
    ///   - fields: those of the request.
    ///   - secret: the key of the digest.
    package func keyFieldText(of fields: HeaderFields, to target: TargetURI, secret: [UInt8]) -> String {
        let names = keyFields(for: target)
        guard !names.isEmpty else { return "" }
        var frames = FramedBytes()
        for name in Set(names.map(\.canonicalName)).sorted() {
            frames.append(name)
            // A field that is absent is no empty one.
            frames.append(FieldName(name).flatMap { fields[$0] }.map { "=" + $0 } ?? "")
        }
        return "\nfields:" + SHA256Digest.hex(SHA256Digest(authenticating: frames.bytes, key: secret).bytes.prefix(16))
    }
}
