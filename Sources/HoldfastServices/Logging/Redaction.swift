// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a log shows of header fields, arguments and properties: never secrets, known harmless values unchanged, and for
/// anything else a mark that is the same for equal values.
///
/// A name is secret if it contains one of ``words``, or if a part of it is one of ``names``, ignoring case and everything but
/// letters and digits: `X-Api-Key`, `api_key`, `subscriptionKey` and `user[apiKey]` are all secret. The value of a field or
/// argument that is neither secret nor in ``shownFields`` or ``shownArguments`` is replaced by a mark such as `<#3f09ac>`
/// unless it has less than four characters. Properties of JSON are shown unless their names are secret. It is better to hide
/// too much than too little. Paths are shown unchanged, so keep secrets out of paths, or hide them with ``finally``.
public struct Redaction: Sendable {
    /// The text that replaces a secret.
    public static let mark = "<redacted>"

    /// Words that make every name that contains one of them secret.
    public var words: Set<String> {
        didSet { plainWords = Redaction.plain(words) }
    }
    /// Names that are secret, and that make every name secret that has them as a part.
    public var names: Set<String> {
        didSet { plainNames = Redaction.plain(names) }
    }
    /// Header fields that hold a secret, besides those whose names are secret; none by default.
    public var fields: Set<FieldName> = []
    /// Header fields whose values are shown; by default the standard HTTP fields that hold no credential, and identifiers of
    /// requests and traces.
    public var shownFields: Set<FieldName>
    /// Arguments of queries and forms whose values are shown, in lower case; by default those for pages, sorting and formats.
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
