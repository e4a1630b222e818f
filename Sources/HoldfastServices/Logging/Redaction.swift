// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastSemantics

/// What a log shows of header fields, arguments and properties: never secrets, known harmless values unchanged, and for
/// anything else a mark that is the same for equal values.
///
/// A name is secret if it contains one of ``words``, or if a part of it is one of ``names``, ignoring case and everything but
/// letters and digits: `X-Api-Key`, `api_key`, `subscriptionKey` and `user[apiKey]` are all secret. The value of a field or
/// argument that is neither secret nor in ``shownFields`` or ``shownArguments`` is replaced by a mark such as `<#3f09ac>`
/// unless it has less than four characters; so is a part of a query or form that has no name. Properties of JSON are shown
/// unless their names are secret, or they are the `value` of an object whose `name` or `key` is a secret name. It is better to
/// hide too much than too little. Paths are shown unchanged, so keep secrets out of paths, or hide them with ``finally``.
public struct Redaction: Sendable {
    /// The text that replaces a secret.
    public static let mark = "<redacted>"

    /// Words that make every name that contains one of them secret.
    public var words: Set<String> { didSet { plainWords = Redaction.plain(words) } }
    /// Names that are secret, and that make every name secret that has them as a part.
    public var names: Set<String> { didSet { plainNames = Redaction.plain(names) } }
    /// Header fields that hold a secret, besides those whose names are secret; none by default.
    public var fields: Set<FieldName> = []
    /// Header fields whose values are shown; by default the standard HTTP fields that hold no credential, and identifiers of
    /// requests and traces.
    public var shownFields: Set<FieldName>
    /// Arguments of queries and forms whose values are shown, in lower case; by default those for pages, sorting and formats.
    /// What follows a `&` or `;` in such a value counts as another argument.
    public var shownArguments: Set<String>
    /// Changes each text last, before it is written; by default returns it unchanged.
    public var finally: @Sendable (String) -> String = { $0 }

    private var plainWords: Set<String>
    private var plainNames: Set<String>

    /// How a value is shown.
    enum Treatment {
        case shown
        case shortened
        case hidden
    }

    /// Creates a redaction with the defaults.
    public init() {
        words = [
            "token", "password", "passwd", "passphrase", "passcode", "secret", "apikey", "accesskey", "privatekey",
            "credential", "authorization", "authentication", "cookie", "signature", "session", "assertion", "challenge",
            "saml", "devicecode", "usercode",
        ]
        names = ["auth", "jwt", "key", "keys", "otp", "pass", "pin", "pwd", "sid", "sig"]
        shownFields = Redaction.harmlessFields
        shownArguments = [
            "count", "cursor", "desc", "fields", "filter", "format", "from", "grant_type", "include", "lang",
            "language",
            "limit", "locale", "offset", "order", "page", "page_size", "per_page", "q", "query", "response_type",
            "size",
            "sort", "start", "to", "type", "version",
        ]
        plainWords = Redaction.plain(words)
        plainNames = Redaction.plain(names)
    }

    private static let harmlessFields: Set<FieldName> = [
        "Accept", "Accept-CH", "Accept-Encoding", "Accept-Language", "Accept-Patch", "Accept-Post", "Accept-Ranges",
        "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods",
        "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Max-Age",
        "Access-Control-Request-Headers", "Access-Control-Request-Method", "Age", "Allow", "Alt-Svc", "Cache-Control",
        "Cache-Status", "Connection", "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language",
        "Content-Length", "Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type",
        "Cross-Origin-Resource-Policy", "Date", "Deprecation", "ETag", "Expect", "Expires", "Host", "If-Match",
        "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Last-Modified", "Link",
        "Location", "Max-Forwards", "No-Vary-Search", "Origin", "Pragma", "Prefer", "Preference-Applied", "Priority",
        "Range", "RateLimit", "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset",
        "Referer",
        "Referrer-Policy", "Repr-Digest", "Retry-After", "Server", "Server-Timing", "Strict-Transport-Security",
        "Sunset",
        "TE", "Traceparent", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Vary", "Via", "Warning",
        "X-Cache",
        "X-Cache-Hits", "X-Content-Type-Options", "X-Correlation-ID", "X-Frame-Options", "X-Request-ID", "X-Served-By",
        "X-Trace-ID",
    ]

    func treatment(ofArgument name: String) -> Treatment {
        // An authorization code is called so only here: in JSON, `code` is what APIs call their error codes.
        if isSecret(name) || name.lowercased() == "code" { return .hidden }
        return shownArguments.contains(name.lowercased()) ? .shown : .shortened
    }

    func treatment(of name: FieldName) -> Treatment {
        if fields.contains(name) || name.canonicalName.hasPrefix("proxy-") { return .hidden }
        // The name is HTTP's own, or listed by the program: `Access-Control-Allow-Credentials` holds none.
        if shownFields.contains(name) { return .shown }
        return isSecret(name.rawName) ? .hidden : .shortened
    }

    /// Whether a value with this name is a secret.
    func isSecret(_ name: String) -> Bool {
        let plain = Redaction.plain(name)
        return plainWords.contains { plain.contains($0) } || plainNames.contains(plain)
            || Redaction.parts(of: name).contains { plainNames.contains($0) }
    }

    /// The parts between brackets, dots, dashes and similar, and the words in them: `user[apiKey]` has `user`, `apikey`, `api`
    /// and `key`.
    private static func parts(of name: String) -> Set<String> {
        var parts = Set(name.split { "[].".contains($0) }.map { plain(String($0)) })
        var word = ""
        var wasLower = false
        for character in name {
            let isPart = character.isLetter || character.isNumber
            if !isPart || wasLower && character.isUppercase {
                parts.insert(plain(word))
                word = ""
            }
            if isPart { word.append(character) }
            wasLower = character.isLowercase
        }
        return parts.union([plain(word)])
    }

    private static func plain(_ name: String) -> String {
        String(
            name.lowercased().unicodeScalars.filter { $0.properties.isAlphabetic || $0.properties.numericType != nil }
        )
    }

    private static func plain(_ names: Set<String>) -> Set<String> {
        Set(names.map { plain($0) }).subtracting([""])
    }
}

/// Makes the texts of one call safe to show, and remembers each secret it finds, so that it is also hidden elsewhere.
struct Redactor {
    /// Shorter secrets are only hidden in their own place, not wherever the same letters occur.
    private static let shortestSecret = 4
    /// Values of unknown names with at least this length are hidden wherever they occur, like secrets; shorter ones are too
    /// often words.
    private static let shortestUnknown = 12
    /// The salt of the marks, so that nobody can find out by trying which value has which mark.
    private static let salt = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))

    /// With more secrets, little is shown of a text: a peer may send thousands, and searching every line for each would take seconds.
    static let mostSecrets = 256

    /// The depth to which URLs in URLs and JSON in JSON are checked; anything deeper is hidden.
    private static let deepest = 8

    let redaction: Redaction
    private var depth = 0
    private(set) var secrets: Set<String> = []

    init(_ redaction: Redaction) { self.redaction = redaction }

    /// A URL without user name and password, and without the values of secret arguments.
    mutating func url(_ text: String) -> String {
        let (head, fragment) = text.divided(at: "#")
        let (beforeQuery, query) = head.divided(at: "?")
        var shown = withoutUser(beforeQuery)
        if let query { shown += "?" + arguments(query) }
        if let fragment { shown += "#" + (fragment.contains("=") ? arguments(fragment) : fragment) }
        return shown
    }

    /// Arguments of a query or a form, with the values of secret ones hidden and those of unknown ones replaced by marks.
    mutating func arguments(_ text: String) -> String {
        text.split(separator: "&", omittingEmptySubsequences: false).map { pair(String($0), isArgument: true) }
            .joined(separator: "&")
    }

    /// A name with its value: an argument, or part of a text, where nothing is unknown.
    private mutating func pair(_ pair: String, isArgument: Bool) -> String {
        let (name, value) = pair.divided(at: "=")
        let plainName = Redactor.decoded(name)
        let plainValue = Redactor.decoded(value ?? "")
        if isArgument, !Redactor.isName(plainName, hasValue: !plainValue.allSatisfy { $0 == "=" }) {
            // A value without a name, such as a token or JSON that is sent as a form.
            noteUnknown(value ?? "", plainValue)
            return shortened(Redactor.decoded(pair), written: pair) ?? pair
        }
        guard let value else { return text(pair) }
        switch redaction.treatment(ofArgument: plainName) {
        // The key in Cache-Status is a URL (RFC 9211 §2.7).
        case .hidden where isArgument || !Redactor.isURL(value):
            noteValue(value)
            noteValue(plainValue)
            return "\(name)=\(Redaction.mark)"
        case .shortened where isArgument:
            return shortened(plainValue, written: value).map { "\(name)=\($0)" } ?? pair
        case .hidden, .shortened, .shown:
            let plain = isArgument ? plainValue : value
            var shown = text(plain)
            if isArgument { shown = withFurtherArguments(shown) }
            return shown == plain ? pair : "\(name)=\(shown)"
        }
    }

    /// The value of a shown argument; a server may read what follows a `&` or `;` in it as further arguments.
    private mutating func withFurtherArguments(_ value: String) -> String {
        guard let place = value.firstIndex(where: { $0 == "&" || $0 == ";" }) else { return value }
        depth += 1
        defer { depth -= 1 }
        let further = value[value.index(after: place)...].split(separator: ";", omittingEmptySubsequences: false)
        return "\(value[...place])" + further.map { arguments(String($0)) }.joined(separator: ";")
    }

    /// The value of a header field; nil if it is a secret.
    mutating func value(of line: HeaderFields.Line, credentials: Set<FieldName>) -> String? {
        let treatment = credentials.contains(line.name) ? .hidden : redaction.treatment(of: line.name)
        switch treatment {
        case .hidden:
            noteField(line.value)
            return nil
        case .shortened: return shortened(line.value, written: line.value) ?? line.value
        case .shown: return text(line.value)
        }
    }

    /// A mark that is the same for equal values; nil if the value is short enough to be shown.
    private mutating func shortened(_ value: String, written: String) -> String? {
        guard value.count >= Redactor.shortestSecret else { return nil }
        // It is a mark already if it is a part of a value that was searched.
        if value.hasPrefix("<#"), value.hasSuffix(">"), value.count == 9 { return value }
        // What is a secret in it may be echoed by itself.
        _ = text(value)
        noteUnknown(value, written)
        var hasher = Hasher()
        hasher.combine(Redactor.salt.0)
        hasher.combine(Redactor.salt.1)
        hasher.combine(value)
        let digits = String(UInt64(bitPattern: Int64(hasher.finalize())) & 0xff_ffff, radix: 16)
        return "<#" + String(repeating: "0", count: 6 - digits.count) + digits + ">"
    }

    /// A text that may contain a URL or JSON, or be a credential itself.
    mutating func text(_ text: String) -> String {
        guard depth < Redactor.deepest else { return Redaction.mark }
        depth += 1
        defer { depth -= 1 }
        if let first = text.first(where: { !$0.isWhitespace }), first == "{" || first == "[",
            let shown = json(Data(text.utf8))
        {
            return shown
        }
        let isCredential = Redactor.isCredential(text)
        if isCredential { note(text) }
        var shown = ""
        var scheme: String?
        for (part, separator) in Redactor.parts(of: text, at: { $0.isWhitespace }) {
            let start = part.prefix { Redactor.edges.contains($0) }
            var core = part[start.endIndex...]
            while let last = core.last, Redactor.edges.contains(last) { core = core.dropLast() }
            let word = word(String(core), following: scheme)
            shown += "\(start)\(word)\(part[core.endIndex...])\(separator)"
            if !core.isEmpty {
                let lower = core.suffix(9).lowercased()
                scheme = Redactor.schemes.first { lower.hasSuffix($0) }
            }
        }
        return isCredential ? Redaction.mark : shown
    }

    /// A word of a text: a credential, a URL, names with their values, or one of these in percent-encoding.
    private mutating func word(_ word: String, following scheme: String?) -> String {
        if let scheme, Redactor.isToken(word) {
            noteField("\(scheme) \(word)")
            return Redaction.mark
        }
        if Redactor.isCredential(word) {
            note(word)
            return Redaction.mark
        }
        let head = word.prefix { !"=?#".contains($0) }
        let next = word[head.endIndex...].first
        if next == "?" || next == "#" || head.contains("://") { return url(word) }
        if next == "=" {
            return Redactor.parts(of: word, at: { $0 == "&" })
                .map { pair($0.text, isArgument: false) + $0.separator }.joined()
        }
        guard word.contains("%") else { return word }
        let plain = Redactor.decoded(word)
        guard plain != word else { return word }
        let shown = text(plain)
        return shown == plain ? word : shown
    }

    /// JSON, sorted by name, with the values of secret properties hidden; nil if it is not JSON, or a single value.
    mutating func json(_ data: Data) -> String? {
        guard let value = try? JSONSerialization.jsonObject(with: data) else { return nil }
        let shown = visible(value)
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        guard JSONSerialization.isValidJSONObject(shown),
            let written = try? JSONSerialization.data(withJSONObject: shown, options: options)
        else { return nil }
        return String(decoding: written, as: UTF8.self)
    }

    /// Lines ready to be written: without any secret found so far, and without control characters.
    func finished(_ lines: [String]) -> [String] {
        let secrets = secrets.sorted { ($0.count, $0) > ($1.count, $1) }
        return lines.map { line in
            var line = line
            for secret in secrets where line.contains(secret) { line = line.replacing(secret, with: Redaction.mark) }
            let shown = line.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }
            return redaction.finally(String(String.UnicodeScalarView(shown)))
        }
    }

    /// Notes what a field contains: the whole value, what follows a scheme's name, a cookie's values, and what is encoded in
    /// Base64.
    private mutating func noteField(_ value: String) {
        note(value)
        // Lines of one name may have been joined.
        if value.contains(",") {
            for part in value.split(separator: ",") { noteField(part.trimmingCharacters(in: .whitespaces)) }
        }
        for part in value.split(separator: ";") {
            let (_, cookie) = String(part).divided(at: "=")
            if let cookie { noteValue(cookie.trimmingCharacters(in: .whitespaces)) }
        }
        let words = value.split(separator: " ")
        guard words.count > 1 else { return }
        for word in words.dropFirst() { note(String(word)) }
        if words[0].lowercased() == "basic", let plain = Data(base64Encoded: String(words[1])) {
            let text = String(decoding: plain, as: UTF8.self)
            note(text)
            if let password = text.divided(at: ":").1 { note(password) }
        }
    }

    /// Notes the value of a secret name, and what of it stands before a delimiter: more may follow that is not part of it.
    private mutating func noteValue(_ value: String) {
        let delimiters = "<>'\",;"
        note(value)
        note(String(value.drop { delimiters.contains($0) }.prefix { !delimiters.contains($0) }))
    }

    /// Notes the forms of an unknown value, or its parts if lines of one name were joined, if they are more than a word.
    private mutating func noteUnknown(_ forms: String...) {
        for part in forms + forms.flatMap({ $0.split(separator: ",").map { String($0) } }) {
            let part = part.trimmingCharacters(in: .whitespaces)
            // A URL stands in other places of the message in its own right.
            if part.count >= Redactor.shortestUnknown, !Redactor.decoded(part).contains("://") { note(part) }
        }
    }

    private mutating func note(_ secret: String) {
        for secret in [secret, secret.removingPercentEncoding ?? secret]
        where secret.count >= Redactor.shortestSecret && !Redaction.mark.contains(secret) {
            secrets.insert(secret)
            // As it stands in JSON, and in JSON that is a string in JSON.
            let once = Self.escaped(secret)
            secrets.formUnion(once)
            for form in once { secrets.formUnion(Self.escaped(form)) }
        }
    }

    /// The forms of a text in a JSON string: writers differ in whether they escape slashes, and what is not ASCII.
    private static func escaped(_ text: String) -> Set<String> {
        let isEscapable = text.utf8.contains { $0 < 0x20 || $0 >= 0x80 || "/\\\"".utf8.contains($0) }
        guard isEscapable else { return [text] }
        let choices = [(false, false), (false, true), (true, false), (true, true)]
        return Set(choices.map { escaped(text, slash: $0.0, nonASCII: $0.1) })
    }

    private static let shortEscapes: [Unicode.Scalar: String] = [
        "\\": "\\\\", "\"": "\\\"", "\u{8}": "\\b", "\t": "\\t", "\n": "\\n", "\u{c}": "\\f", "\r": "\\r",
    ]

    /// A text as it stands in a JSON string (RFC 8259 §7).
    private static func escaped(_ text: String, slash: Bool, nonASCII: Bool) -> String {
        var written = ""
        for scalar in text.unicodeScalars {
            if let short = shortEscapes[scalar] {
                written += short
            } else if scalar == "/", slash {
                written += "\\/"
            } else if scalar.value < 0x20 || nonASCII && !scalar.isASCII {
                for unit in String(scalar).utf16 {
                    written += "\\u" + String(0x1_0000 + Int(unit), radix: 16).dropFirst()
                }
            } else {
                written.unicodeScalars.append(scalar)
            }
        }
        return written
    }

    /// A text without the users in its URLs; a field may have several.
    private mutating func withoutUser(_ text: String) -> String {
        var shown = ""
        var rest = text[...]
        while let start = rest.firstRange(of: "//") {
            shown += rest[..<start.upperBound]
            rest = rest[start.upperBound...]
            let authority = rest.prefix { $0 != "/" }
            guard let at = authority.lastIndex(of: "@") else { continue }
            let user = String(authority[..<at])
            note(user)
            if let password = user.divided(at: ":").1 { note(password) }
            shown += Redaction.mark
            rest = rest[at...]
        }
        return shown + rest
    }

    private mutating func visible(_ value: Any) -> Any {
        switch value {
        case let object as [String: Any]:
            var shown: [String: Any] = [:]
            // Lists of fields or settings have the name of each as a property, too.
            let namesSecret = object.contains { name, part in
                guard ["name", "key"].contains(name.lowercased()), let text = part as? String else { return false }
                return redaction.isSecret(text)
            }
            for (name, part) in object {
                if redaction.isSecret(name) || namesSecret && name.lowercased() == "value" {
                    noteAll(part)
                    shown[name] = Redaction.mark
                } else {
                    shown[name] = visible(part)
                }
            }
            return shown
        case let list as [Any]: return list.map { visible($0) }
        case let text as String: return self.text(text)
        default: return value
        }
    }

    private mutating func noteAll(_ value: Any) {
        switch value {
        case let object as [String: Any]: for part in object.values { noteAll(part) }
        case let list as [Any]: for part in list { noteAll(part) }
        case let text as String: note(text)
        case let number as Int: note(String(number))
        default: break
        }
    }

    /// The authentication schemes whose names show that a credential follows (RFC 9110 §11.1).
    private static let schemes: Set<String> = ["bearer", "basic", "digest", "negotiate"]

    /// What stands around a word and is not part of it.
    private static let edges = "<>()[]{}'\"`,;:."

    /// The parts of a text, each with the separator that follows it: a value in quotation marks is not divided, and `<…>` ends a
    /// part (RFC 3986, appendix C).
    private static func parts(
        of text: String,
        at isSeparator: (Character) -> Bool
    ) -> [(text: String, separator: String)] {
        var parts: [(text: String, separator: String)] = []
        var part = ""
        var isQuoted = false
        for character in text {
            if character == "\"" { isQuoted = !isQuoted && part.last == "=" }
            if !isQuoted, isSeparator(character) {
                parts.append((part, String(character)))
                part = ""
                continue
            }
            part.append(character)
            if !isQuoted, character == ">", part.first == "<" {
                parts.append((part, ""))
                part = ""
            }
        }
        parts.append((part, ""))
        return parts
    }

    /// Whether it looks like the name of an argument: of the usual characters, and not long, least of all without a value.
    private static func isName(_ text: String, hasValue: Bool) -> Bool {
        guard text.count < (hasValue ? 65 : shortestUnknown), !isCredential(text) else { return false }
        return text.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil || "_-.[]:$~*!@ ".unicodeScalars.contains($0)
        }
    }

    private static func isURL(_ value: String) -> Bool {
        let start = value.drop { edges.contains($0) }
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }

    /// Whether a word after a scheme's name is a credential (`token68` in RFC 9110 §11.2), not a parameter or another word.
    private static func isToken(_ word: String) -> Bool {
        guard word.count >= shortestSecret, !word.drop(while: { $0 != "=" }).contains(where: { $0 != "=" }) else {
            return false
        }
        return word.count >= shortestUnknown || !word.allSatisfy { $0.isLowercase }
    }

    /// Whether a text is a credential, whatever its name: a scheme with its value, or a signed token (RFC 7519).
    private static func isCredential(_ text: String) -> Bool {
        let lower = text.prefix(10).lowercased()
        if schemes.contains(where: { lower.hasPrefix($0 + " ") }) { return true }
        return text.hasPrefix("eyJ") && text.split(separator: ".").count >= 3 && !text.contains(" ")
    }

    private static func decoded(_ text: String) -> String {
        let spaced = text.replacing("+", with: " ")
        return spaced.removingPercentEncoding ?? spaced
    }
}

extension String {
    /// The text before the first `separator`, and the text after it; nil if there is none.
    fileprivate func divided(at separator: Character) -> (String, String?) {
        guard let place = firstIndex(of: separator) else { return (self, nil) }
        return (String(self[..<place]), String(self[index(after: place)...]))
    }
}
