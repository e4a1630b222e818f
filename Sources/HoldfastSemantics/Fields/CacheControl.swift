// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Cache-Control field of a request or a response, parsed leniently and written correctly (RFC 9111 §5.2).
///
/// Names are lowercased, unknown directives are kept, and junk between commas is skipped. If a value is malformed or contradicts
/// another one, the interpretation that reuses less applies (RFC 9111 §4.2.1).
public struct CacheControl: Sendable, Hashable, CustomStringConvertible {
    /// One directive.
    public struct Directive: Sendable, Hashable {
        /// The name in lower case.
        public let name: String

        /// The argument without quotes and escapes; nil if there is none.
        public let argument: String?

        /// Creates a directive; the name is lowercased.
        public init(name: String, argument: String? = nil) {
            self.name = name.loweringASCII()
            self.argument = argument
        }
    }

    /// The directives in order, including duplicates.
    public private(set) var directives: [Directive]

    /// Creates a field without directives.
    public init() { directives = [] }

    /// Creates a field from directives that another field has given (RFC 9213 §2.1).
    package init(directives: [Directive]) { self.directives = directives }

    /// Reads all Cache-Control lines of a message.
    public init(_ fields: HeaderFields) {
        directives = []
        for line in fields where line.name == .cacheControl {
            parse(line.value)
        }
    }

    /// Reads the Cache-Control of a request, where `Pragma: no-cache` counts if the field is absent (RFC 9111 §5.4).
    ///
    /// - Parameter request: the request's fields.
    public init(request: HeaderFields) {
        self.init(request)
        guard !request.contains(.cacheControl), let pragma = request[.pragma] else { return }
        let members = FieldScanner.members(of: pragma)
        if members.contains(where: { $0.loweringASCII() == "no-cache" }) {
            directives.append(Directive(name: "no-cache"))
        }
    }

    /// Parses one field value; linear time.
    public init(parsing value: String) {
        directives = []
        parse(value)
    }

    /// Sets a directive in place of the first one with that name; removes further ones.
    ///
    /// - Parameters:
    ///   - name: the directive's name; if it is not a token, nothing changes, since it could not be written.
    ///   - argument: its argument, or nil for none; quoted when written, if necessary. If it contains a line end or another
    ///     control character except tab, nothing changes either.
    public mutating func set(_ name: String, to argument: String? = nil) {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return }
        // RFC 9110 §5.6.4: no escape makes one of these part of a quoted string.
        guard !(argument ?? "").utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else { return }
        let directive = Directive(name: name, argument: argument)
        guard let first = directives.firstIndex(where: { $0.name == directive.name }) else {
            return directives.append(directive)
        }
        let tail = directives[(first + 1)...].filter { $0.name != directive.name }
        directives = directives[..<first] + [directive] + tail
    }

    /// Removes every directive with this name.
    public mutating func remove(_ name: String) {
        let folded = name.loweringASCII()
        directives.removeAll { $0.name == folded }
    }

    /// Whether the field has a directive with this name, with or without an argument.
    ///
    /// - Parameter name: the name in any case.
    public func contains(_ name: String) -> Bool {
        let folded = name.loweringASCII()
        return directives.contains { $0.name == folded }
    }

    /// The field value: tokens bare, everything else quoted, field-name lists always quoted (RFC 9111 §5.2.2.4).
    public var description: String {
        directives.map(CacheControl.text).joined(separator: ", ")
    }

    private static func text(of directive: Directive) -> String {
        guard let argument = directive.argument else { return directive.name }
        let takesFieldNames = directive.name == "no-cache" || directive.name == "private"
        if !takesFieldNames, !argument.isEmpty, argument.utf8.allSatisfy(\.isTokenCharacter) {
            return "\(directive.name)=\(argument)"
        }
        var quoted = ""
        for scalar in argument.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
            quoted.unicodeScalars.append(scalar)
        }
        return "\(directive.name)=\"\(quoted)\""
    }

    private mutating func parse(_ value: String) {
        var scanner = FieldScanner(value)
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            guard let name = scanner.token() else {
                _ = scanner.text(upTo: UInt8(ascii: ","))
                continue
            }
            guard scanner.consume(UInt8(ascii: "=")) else {
                // A directive followed by junk still counts: "no-store x" must not become permission. Its argument is then empty,
                // which is invalid for every directive that allows something.
                let junk = scanner.text(upTo: UInt8(ascii: ","))
                directives.append(Directive(name: name, argument: junk.isEmpty ? nil : ""))
                continue
            }
            // Whitespace around "=" or text after a closing quote makes an argument that is not a valid number.
            let isSpaced = scanner.peek?.isOptionalWhitespace ?? false
            let quoted = scanner.quotedString()
            let rest = scanner.text(upTo: UInt8(ascii: ","))
            let argument = quoted.map { rest.isEmpty ? $0 : "\"\($0)\"\(rest)" } ?? (isSpaced ? "" : rest)
            directives.append(Directive(name: name, argument: argument))
        }
    }
}

/// The directives that Holdfast acts on (RFC 9111 §5.2, RFC 5861, RFC 8246).
extension CacheControl {
    /// A directive that may be limited to some fields (RFC 9111 §5.2.2.4, §5.2.2.7).
    public enum FieldNameForm: Sendable, Hashable {
        /// The directive is absent.
        case absent
        /// It applies to the whole response.
        case unqualified
        /// It applies only to these fields.
        case fields([FieldName])
    }

    /// How much staleness a request accepts (RFC 9111 §5.2.1.2).
    public enum StaleTolerance: Sendable, Hashable {
        /// The directive is absent.
        case absent
        /// Any amount.
        case any
        /// At most this many seconds past the freshness lifetime.
        case seconds(Int64)
    }

    /// 2^31: the limit of delta-seconds (RFC 9111 §1.2.2).
    package static let maximumDeltaSeconds: Int64 = 2_147_483_648

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

    /// `stale-while-revalidate` in seconds: the smallest of several, nil if any is malformed (RFC 5861 §3).
    public var staleWhileRevalidate: Int64? { allowance("stale-while-revalidate") }

    /// `stale-if-error` in seconds, read like ``staleWhileRevalidate`` (RFC 5861 §4).
    public var staleIfError: Int64? { allowance("stale-if-error") }

    /// `no-store`.
    public var noStore: Bool { has("no-store") }

    /// `no-cache`, for the whole response or some fields; a list that is malformed or names a field that a cache needs for its
    /// decisions, such as Vary, counts as unqualified.
    public var noCache: FieldNameForm { fieldNames("no-cache") }

    /// `private`, for the whole response or some fields; the list is read like that of ``noCache``.
    public var `private`: FieldNameForm { fieldNames("private") }

    /// `public`; with an argument, which it cannot have, it allows nothing.
    public var `public`: Bool { grants("public") }

    /// `must-revalidate`.
    public var mustRevalidate: Bool { has("must-revalidate") }

    /// `proxy-revalidate`.
    public var proxyRevalidate: Bool { has("proxy-revalidate") }

    /// `must-understand`, which may override a no-store (RFC 9111 §5.2.2.3); with an argument it counts as absent.
    public var mustUnderstand: Bool { grants("must-understand") }

    /// `immutable` (RFC 8246); with an argument, which it cannot have, it allows nothing.
    public var immutable: Bool { grants("immutable") }

    /// `no-transform`.
    public var noTransform: Bool { has("no-transform") }

    /// `only-if-cached` of a request (RFC 9111 §5.2.1.7).
    public var onlyIfCached: Bool { has("only-if-cached") }

    /// Whether every `s-maxage` is a valid number, so that it may allow a response for everyone (RFC 9111 §3.5).
    var hasValidSharedMaxAge: Bool { allowance("s-maxage") != nil }

    private func has(_ name: String) -> Bool {
        directives.contains { $0.name == name }
    }

    /// Like `has`, for directives that extend what a cache may do: every occurrence must be well formed.
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
            // "*" is a token, so it could name a field, but it is meant as all of them; and without the ruling ones nothing can be
            // decided.
            guard !valid.isEmpty, valid.count == members.count,
                !valid.contains(where: { $0 == "*" || FieldUpdate.ruling.contains($0) })
            else { return .unqualified }
            names += valid
        }
        return isPresent ? .fields(names) : .absent
    }
}
