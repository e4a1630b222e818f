// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Rules as a JSON text: the members of each rule have the names of the properties of ``CacheRule``.
extension CacheRules {
    /// The longest JSON text, in bytes.
    package static let longestText = 1 << 20
    /// How many rules a JSON text may have.
    package static let mostRules = 1_000
    /// How many members a list in a rule may have.
    package static let mostMembers = 100

    /// Reads rules from JSON, strictly: anything unknown or invalid is an error.
    ///
    /// ```json
    /// {
    ///   "rules": [
    ///     { "paths": ["/account/*"], "neverStore": true },
    ///     { "hosts": ["*.shop.example"], "contentTypes": ["image/*"], "lifetime": "7d" },
    ///     { "paths": ["/api/*"], "lifetime": "5m", "staleIfError": "1h", "keyFields": ["X-Tenant"] }
    ///   ]
    /// }
    /// ```
    ///
    /// - Parameter json: UTF-8, such as the contents of a file; at most 1 MiB, 1,000 rules, 100 members in a list, and 1,024
    ///   bytes in a pattern.
    /// - Throws: ``CacheRulesError`` with line and column.
    public init(json: some Collection<UInt8>) throws(CacheRulesError) {
        guard json.count <= CacheRules.longestText else {
            throw CacheRulesError("The text is longer than \(CacheRules.longestText) bytes; shorten it.")
        }
        let bytes = Array(json)
        do {
            try self.init(JSONDocument(bytes))
        } catch {
            throw CacheRulesError(error, in: bytes)
        }
    }

    private init(_ document: JSONDocument) throws(JSONDocument.Problem) {
        guard case .object(let members) = document.root.value else {
            throw JSONDocument.Problem(
                "The text is \(document.root.value.kind); write an object, as in { \"rules\": [] }.",
                at: document.root.offset
            )
        }
        var rules: [CacheRule]?
        for member in members {
            guard member.name == "rules" else {
                throw JSONDocument.Problem(
                    "\"\(member.name.shown)\" is not a member; the only one here is rules.",
                    at: member.offset
                )
            }
            let nodes = try RuleReader.list(member.node, named: "rules", limit: CacheRules.mostRules)
            var read: [CacheRule] = []
            for node in nodes { read.append(try RuleReader.rule(node)) }
            rules = read
        }
        guard let rules else {
            throw JSONDocument.Problem("There is no \"rules\"; write { \"rules\": [] }.", at: document.root.offset)
        }
        self.init(rules)
    }
}

extension CacheRulesError {
    fileprivate init(_ problem: JSONDocument.Problem, in bytes: [UInt8]) {
        let before = bytes.prefix(problem.offset)
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        let isMarked = start == 0 && before.starts(with: [0xEF, 0xBB, 0xBF])
        self.init(
            problem.message,
            line: before.count { $0 == UInt8(ascii: "\n") } + 1,
            // Each scalar has exactly one byte that is not a continuation byte.
            column: before[start...].count { $0 & 0xC0 != 0x80 } + (isMarked ? 0 : 1)
        )
    }
}

extension String {
    /// A name as shown in a message, shortened if necessary.
    fileprivate var shown: String { utf8.count <= 60 ? self : prefix(40) + "…" }
}

/// Reads one rule.
private struct RuleReader {
    private typealias Problem = JSONDocument.Problem

    private static let names = [
        "hosts", "paths", "contentTypes", "lifetime", "fixedLifetime", "neverStore", "staleIfError",
        "staleWhileRevalidate", "keyFields", "query", "ignoredCookies", "content", "cachesPost", "comment",
    ]

    private var hosts: [String] = []
    private var paths: [String] = []
    private var contentTypes: [String] = []
    private var lifetime: Duration?
    private var fixedLifetime: Duration?
    private var neverStore = false
    private var staleIfError: Duration?
    private var staleWhileRevalidate: Duration?
    private var keyFields: [FieldName] = []
    private var query: QueryOptions?
    private var ignoredCookies: [String] = []
    private var content = ContentNormalizer.raw
    private var cachesPost = false

    static func rule(_ node: JSONDocument.Node) throws(JSONDocument.Problem) -> CacheRule {
        guard case .object(let members) = node.value else {
            throw Problem("A rule must be an object, but this is \(node.value.kind).", at: node.offset)
        }
        var reader = RuleReader()
        for member in members { try reader.read(member) }
        let rule = try reader.made(at: node.offset)
        guard rule.hasSettings else {
            throw Problem(
                "This rule sets nothing; give it a setting such as \"lifetime\": \"5m\" or \"neverStore\": true.",
                at: node.offset
            )
        }
        return rule
    }

    private mutating func read(_ member: JSONDocument.Member) throws(JSONDocument.Problem) {
        let (node, name) = (member.node, member.name)
        switch name {
        case "hosts":
            hosts = try RuleReader.patterns(node, name) { text throws(CacheRulesError) in try CacheRule(hosts: [text]) }
        case "paths":
            paths = try RuleReader.patterns(node, name) { text throws(CacheRulesError) in try CacheRule(paths: [text]) }
        case "contentTypes":
            contentTypes = try RuleReader.patterns(node, name) { text throws(CacheRulesError) in
                try CacheRule(contentTypes: [text])
            }
        case "lifetime": lifetime = try RuleReader.duration(node, named: name)
        case "fixedLifetime": fixedLifetime = try RuleReader.duration(node, named: name)
        case "staleIfError": staleIfError = try RuleReader.duration(node, named: name)
        case "staleWhileRevalidate": staleWhileRevalidate = try RuleReader.duration(node, named: name)
        case "neverStore": neverStore = try RuleReader.bool(node, named: name)
        case "cachesPost": cachesPost = try RuleReader.bool(node, named: name)
        case "keyFields": keyFields = try RuleReader.fields(node)
        case "ignoredCookies": ignoredCookies = try RuleReader.cookies(node)
        case "query": query = try RuleReader.query(node)
        case "content":
            let text = try RuleReader.string(node, named: name)
            guard ["raw", "json", "graphql"].contains(text) else {
                throw Problem("content must be \"raw\", \"json\" or \"graphql\".", at: node.offset)
            }
            content = ContentNormalizer(rawValue: text)
        case "comment": _ = try RuleReader.string(node, named: name)
        default:
            throw Problem(
                "\"\(name.shown)\" is not a member of a rule; the members are: \(RuleReader.names.joined(separator: ", ")).",
                at: member.offset
            )
        }
    }

    private func made(at offset: Int) throws(JSONDocument.Problem) -> CacheRule {
        do throws(CacheRulesError) {
            return try CacheRule(
                hosts: hosts,
                paths: paths,
                contentTypes: contentTypes,
                lifetime: lifetime,
                fixedLifetime: fixedLifetime,
                neverStore: neverStore,
                staleIfError: staleIfError,
                staleWhileRevalidate: staleWhileRevalidate,
                keyFields: keyFields,
                query: query,
                ignoredCookies: ignoredCookies,
                content: content,
                cachesPost: cachesPost
            )
        } catch {
            throw Problem(error.message, at: offset)
        }
    }

    // MARK: Values

    static func list(
        _ node: JSONDocument.Node,
        named name: String,
        limit: Int
    ) throws(JSONDocument.Problem) -> [JSONDocument.Node] {
        guard case .array(let nodes) = node.value else {
            throw Problem(
                "\(name) must be a list, as in \"\(name)\": […], but this is \(node.value.kind).",
                at: node.offset
            )
        }
        guard nodes.count <= limit else {
            throw Problem("\(name) has more than \(limit) members; leave some out.", at: nodes[limit].offset)
        }
        return nodes
    }

    private static func string(_ node: JSONDocument.Node, named name: String) throws(JSONDocument.Problem) -> String {
        guard case .string(let text) = node.value else {
            throw Problem("\(name) must be a string here, but this is \(node.value.kind).", at: node.offset)
        }
        return text
    }

    private static func bool(_ node: JSONDocument.Node, named name: String) throws(JSONDocument.Problem) -> Bool {
        guard case .bool(let value) = node.value else {
            throw Problem("\(name) must be true or false, but this is \(node.value.kind).", at: node.offset)
        }
        return value
    }

    /// - Parameter check: throws if the text is not a valid pattern.
    private static func patterns(
        _ node: JSONDocument.Node,
        _ name: String,
        check: (String) throws(CacheRulesError) -> CacheRule
    ) throws(JSONDocument.Problem) -> [String] {
        let nodes = try list(node, named: name, limit: CacheRules.mostMembers)
        guard !nodes.isEmpty else {
            throw Problem(
                "\(name) is empty and would match nothing; leave it out to match everything.",
                at: node.offset
            )
        }
        var patterns: [String] = []
        for node in nodes {
            let text = try string(node, named: name)
            do throws(CacheRulesError) { _ = try check(text) } catch { throw Problem(error.message, at: node.offset) }
            patterns.append(text)
        }
        return patterns
    }

    private static func duration(
        _ node: JSONDocument.Node,
        named name: String
    ) throws(JSONDocument.Problem) -> Duration {
        func problem() -> Problem {
            Problem(
                "\(name) must be a string with a whole number and a unit, s, m, h or d, as in \"5m\"; the longest is \"36500d\".",
                at: node.offset
            )
        }
        guard case .string(let text) = node.value, let unit = text.utf8.last else { throw problem() }
        let factor: Int64? =
            switch unit {
            case UInt8(ascii: "s"): 1
            case UInt8(ascii: "m"): 60
            case UInt8(ascii: "h"): 3_600
            case UInt8(ascii: "d"): 86_400
            default: nil
            }
        let digits = text.utf8.dropLast()
        guard let factor, !digits.isEmpty, digits.count <= 10, digits.allSatisfy(\.isDigit),
            let number = Int64(Substring(digits)), number * factor <= 36_500 * 86_400
        else { throw problem() }
        return .seconds(number * factor)
    }

    private static func fields(_ node: JSONDocument.Node) throws(JSONDocument.Problem) -> [FieldName] {
        var names: [FieldName] = []
        for node in try list(node, named: "keyFields", limit: CacheRules.mostMembers) {
            let text = try string(node, named: "keyFields")
            guard text.utf8.count <= CacheRule.longestPattern, let name = FieldName(text) else {
                throw Problem(
                    "\"\(text.shown)\" is not a field name; write one such as Accept-Language.",
                    at: node.offset
                )
            }
            names.append(name)
        }
        return names
    }

    private static func cookies(_ node: JSONDocument.Node) throws(JSONDocument.Problem) -> [String] {
        var names: [String] = []
        for node in try list(node, named: "ignoredCookies", limit: CacheRules.mostMembers) {
            let text = try string(node, named: "ignoredCookies")
            // A single asterisk would ignore each user's login.
            guard text.utf8.count <= CacheRule.longestPattern, !text.isEmpty, text != "*",
                text.utf8.allSatisfy(\.isTokenCharacter)
            else {
                throw Problem(
                    "\"\(text.shown)\" is not a cookie name; write a name, or a prefix and *, as in visit or ads_*.",
                    at: node.offset
                )
            }
            names.append(text)
        }
        return names
    }

    private static func query(_ node: JSONDocument.Node) throws(JSONDocument.Problem) -> QueryOptions {
        guard case .object(let members) = node.value else {
            throw Problem(
                "query must be an object, as in { \"ignoredNames\": [\"utm_*\"] }, but this is \(node.value.kind).",
                at: node.offset
            )
        }
        var query = QueryOptions()
        for member in members {
            switch member.name {
            case "sortsNames": query.sortsNames = try bool(member.node, named: "sortsNames")
            case "ignoredNames": query.ignoredNames = try parameters(member.node, named: "ignoredNames")
            case "allowedNames": query.allowedNames = try parameters(member.node, named: "allowedNames")
            default:
                throw Problem(
                    "\"\(member.name.shown)\" is not a member of query; the members are: sortsNames, ignoredNames, allowedNames.",
                    at: member.offset
                )
            }
        }
        return query
    }

    private static func parameters(
        _ node: JSONDocument.Node,
        named name: String
    ) throws(JSONDocument.Problem) -> [String] {
        var names: [String] = []
        for node in try list(node, named: name, limit: CacheRules.mostMembers) {
            let text = try string(node, named: name)
            guard text.utf8.count <= CacheRule.longestPattern else {
                throw Problem("A name is longer than \(CacheRule.longestPattern) bytes; shorten it.", at: node.offset)
            }
            names.append(text)
        }
        return names
    }
}
