// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What never appears in a log: which header fields, arguments and properties hold a secret.
///
/// A name is secret where it contains one of ``words`` or is one of ``names``, letter case and everything but letters and digits
/// aside, so `X-Api-Key`, `api_key` and `user[apiKey]` are secret alike; of `user[pin]` and `user.pin` each
/// part counts. It is better to hide too much than too little. A path is shown as it is, so keep secrets out of paths, or hide
/// them by ``finally``.
public struct Redaction: Sendable {
    /// What stands where a secret stood.
    public static let mark = "<redacted>"

    /// Words that make every name secret that contains one.
    public var words: Set<String> {
        didSet { plainWords = Redaction.plain(words) }
    }
    /// Names that are secret as they are.
    public var names: Set<String> {
        didSet { plainNames = Redaction.plain(names) }
    }
    /// Header fields that hold a secret beside those whose names are secret; none by default.
    public var fields: Set<FieldName> = []
    /// Edits each text before it is written, as the last; returns it as it is by default.
    public var finally: @Sendable (String) -> String = { $0 }

    private var plainWords: Set<String>
    private var plainNames: Set<String>

    /// All defaults.
    public init() {
        words = [
            "token", "password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey", "credential",
            "authorization", "authentication", "cookie", "signature", "session", "assertion", "challenge",
        ]
        names = ["auth", "jwt", "key", "otp", "pass", "pin", "pwd", "sid", "sig"]
        plainWords = words
        plainNames = names
    }

    /// Whether what has this name is a secret.
    func isSecret(_ name: String) -> Bool {
        let plain = Redaction.plain(name)
        let parts = name.split { "[].".contains($0) }.map { Redaction.plain(String($0)) }
        return parts.contains { plainNames.contains($0) } || plainWords.contains { plain.contains($0) }
    }

    /// Whether a header field holds a secret; all fields for a proxy do.
    func isSecret(_ name: FieldName) -> Bool {
        fields.contains(name) || name.canonicalName.hasPrefix("proxy-") || isSecret(name.canonicalName)
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
