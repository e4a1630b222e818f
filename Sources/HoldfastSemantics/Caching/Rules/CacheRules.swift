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
    public init(_ rules: [CacheRule] = []) { self.rules = rules }

    /// Rules in this order.
    public init(arrayLiteral rules: CacheRule...) { self.rules = rules }
}

/// The rules of a cache with values derived from them and its other options; shared by all copies of the options.
final class CacheRuleTable: Sendable, Hashable {
    let rules: CacheRules
    /// The ignored cookies of each rule.
    let ignored: [IgnoredCookies]
    let hasKeyFields: Bool
    private let hasContentTypes: Bool
    private let hasKeySettings: Bool
    /// By which the keys were made of what is stored: targets whose keys are made otherwise now are kept away from the store. nil:
    /// nothing of the kind is there.
    let former: CacheRuleTable?

    /// - Parameters:
    ///   - ignored: the cookies that the cache ignores anyway.
    ///   - former: the rules of which stored responses may be left that these would not have stored there.
    init(_ rules: CacheRules, ignored: IgnoredCookies, former: CacheRuleTable? = nil) {
        self.rules = rules
        self.former = former
        hasKeySettings = rules.rules.contains(where: \.hasKeySettings)
        self.ignored = rules.rules.map {
            $0.ignoredCookies.isEmpty ? ignored : IgnoredCookies(names: ignored.names + $0.ignoredCookies)
        }
        hasKeyFields = rules.rules.contains { !$0.keyFields.isEmpty }
        hasContentTypes = rules.rules.contains { !$0.contentTypes.isEmpty }
    }

    /// The index of the rule that determines the keys for a target.
    func keyRule(for target: TargetURI) -> Int? {
        let route = Route(target)
        return rules.rules.firstIndex { $0.contentTypes.isEmpty && $0.matches(route) }
    }

    /// The rule that applies to a response.
    func responseRule(for target: TargetURI, fields: HeaderFields) -> CacheRule? {
        let route = Route(target)
        let value = hasContentTypes ? fields[.contentType] : nil
        let type = value.map { CanonicalContentType($0).essence } ?? ""
        return rules.rules.first { $0.matches(contentType: type) && $0.matches(route) }
    }

    /// Whether nothing stored can be used for a target, whatever its content type.
    func neverStores(_ target: TargetURI) -> Bool {
        if let former, makesOtherKeys(than: former, for: target) { return true }
        let route = Route(target)
        return rules.rules.first { $0.matches(route) }.map { $0.neverStore && $0.contentTypes.isEmpty } ?? false
    }

    /// Whether keys may be made in another way than by other rules, for some target.
    func mayMakeOtherKeys(than other: CacheRuleTable) -> Bool {
        guard hasKeySettings || other.hasKeySettings else { return false }
        // What holds for all content types decides on keys, and what stands before it.
        func settings(_ table: CacheRuleTable) -> [CacheRule.Keying] {
            table.rules.rules.filter { $0.contentTypes.isEmpty }.map(\.keying)
        }
        return settings(self) != settings(other)
    }

    /// Whether the keys of a target are made in another way than by other rules.
    func makesOtherKeys(than other: CacheRuleTable, for target: TargetURI) -> Bool {
        func settings(_ table: CacheRuleTable) -> CacheRule.KeySettings {
            table.keyRule(for: target).map { table.rules.rules[$0].keySettings } ?? CacheRule.KeySettings()
        }
        return settings(self) != settings(other)
    }

    static func == (left: CacheRuleTable, right: CacheRuleTable) -> Bool {
        left === right || left.rules == right.rules && left.ignored == right.ignored && left.former == right.former
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(rules)
    }
}

/// Rules that take the place of others while the cache is in use.
extension CacheOptions {
    /// The rules by which the keys of what is stored were made: those in force, unless others were kept from it before.
    private var keyTable: CacheRuleTable {
        ruleTable?.former ?? ruleTable ?? CacheRuleTable(CacheRules(), ignored: ignored)
    }

    /// These options with other rules.
    ///
    /// - Parameter keptAway: whether the routes whose keys these make otherwise stay away from the store, since what is stored there
    ///   could answer requests that it must not.
    package func replacing(rules: CacheRules, keptAway: Bool = false) -> CacheOptions {
        var options = self
        options.rules = rules
        if keptAway { options.ruleTable = CacheRuleTable(rules, ignored: ignored, former: keyTable) }
        return options
    }

    /// Which targets have their keys made otherwise by other rules; nil where none has.
    package func targetsWithOtherKeys(by rules: CacheRules) -> (@Sendable (TargetURI) -> Bool)? {
        let (former, new) = (keyTable, CacheRuleTable(rules, ignored: ignored))
        guard new.mayMakeOtherKeys(than: former) else { return nil }
        return { new.makesOtherKeys(than: former, for: $0) }
    }
}

/// The only place where rules become options.
extension CacheOptions {
    /// These options with the rules applied for one response; nil if there are no rules, so that nothing is copied.
    ///
    /// Code that decides about a response asks this first and uses the result. The result has no rules.
    @inline(__always)
    func ruled(for stored: StoredResponse) -> CacheOptions? {
        ruleTable == nil ? nil : ruled(for: stored.target, fields: stored.head.fields)
    }

    /// - Parameter fields: the response's fields.
    @inline(never)
    package func ruled(for target: TargetURI, fields: HeaderFields) -> CacheOptions? {
        guard let ruleTable else { return nil }
        var options = self
        options.ruleTable = nil
        if let index = ruleTable.keyRule(for: target) {
            options.ignored = ruleTable.ignored[index]
            options.query = ruleTable.rules.rules[index].query ?? query
        }
        let isKeptAway = ruleTable.former.map { ruleTable.makesOtherKeys(than: $0, for: target) } ?? false
        options.neverStores = isKeptAway
        if let rule = ruleTable.responseRule(for: target, fields: fields) {
            options.neverStores = rule.neverStore || isKeptAway
            // Either one replaces both: the rule determines the lifetime for its route.
            if rule.lifetime != nil || rule.fixedLifetime != nil {
                options.defaultLifetime = rule.lifetime
                options.fixedLifetime = rule.fixedLifetime
            }
            options.staleIfError = rule.staleIfError ?? staleIfError
            options.staleWhileRevalidate = rule.staleWhileRevalidate ?? staleWhileRevalidate
        }
        return options
    }

    /// The rule that determines the keys for a target; nil if there is none.
    package func keyRule(for target: TargetURI) -> CacheRule? {
        guard let ruleTable else { return nil }
        return ruleTable.keyRule(for: target).map { ruleTable.rules.rules[$0] }
    }

    /// The URI that is part of the keys of a target.
    package func keyTarget(of target: TargetURI) -> TargetURI {
        (keyRule(for: target)?.query ?? query).applied(to: target)
    }

    /// Whether the keys of a target depend on more than its canonical form.
    package var mayChangeKeys: Bool { ruleTable != nil || query != QueryOptions() }

    /// Whether there are rules by route.
    package var hasRules: Bool { ruleTable != nil }

    /// The number of the rule that determines the keys for a target; −1 if there is none.
    package func keyRuleIndex(for target: TargetURI) -> Int { ruleTable?.keyRule(for: target) ?? -1 }

    /// The cookies that are ignored in requests to a target and in their responses.
    package func ignoredCookies(for target: TargetURI) -> IgnoredCookies {
        guard let ruleTable, let index = ruleTable.keyRule(for: target) else { return ignored }
        return ruleTable.ignored[index]
    }

    /// Every distinct set of ignored cookies.
    package var allIgnoredCookies: [IgnoredCookies] {
        guard let ruleTable else { return [ignored] }
        var known: Set<IgnoredCookies> = [ignored]
        return [ignored] + ruleTable.ignored.filter { known.insert($0).inserted }
    }

    /// Whether a rule excludes a target's requests from the cache, whatever is stored.
    package func neverStores(_ target: TargetURI) -> Bool {
        ruleTable?.neverStores(target) ?? false
    }

    /// Whether a rule forbids using a stored response.
    func neverStores(_ stored: StoredResponse) -> Bool {
        ruleTable != nil && ruled(for: stored)?.neverStores ?? false
    }

    /// Whether fields of requests are part of some keys.
    package var hasKeyFields: Bool { ruleTable?.hasKeyFields ?? false }

    /// The fields that are part of the keys of a target.
    package func keyFields(for target: TargetURI) -> [FieldName] {
        hasKeyFields ? keyRule(for: target)?.keyFields ?? [] : []
    }

    /// What the key fields of a request add to its key; "" if there are none.
    ///
    /// No field value contains a line feed, so nothing else has this form. Values may be credentials, so they are digested.
    ///
    /// - Parameters:
    ///   - fields: the request's fields.
    ///   - secret: the key of the digest.
    package func keyFieldText(of fields: HeaderFields, to target: TargetURI, secret: [UInt8]) -> String {
        let names = keyFields(for: target)
        guard !names.isEmpty else { return "" }
        var frames = FramedBytes()
        for name in Set(names.map(\.canonicalName)).sorted() {
            frames.append(name)
            // An absent field differs from an empty one.
            frames.append(FieldName(name).flatMap { fields[$0] }.map { "=" + $0 } ?? "")
        }
        return "\nfields:" + SHA256Digest.hex(SHA256Digest(authenticating: frames.bytes, key: secret).bytes.prefix(16))
    }
}
