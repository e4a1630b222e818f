// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Reading and setting fields without Foundation's own methods, which compare a name with all others in lower case, and check what a
/// value consists of: a `setValue` takes longer than a hit.
extension URLRequest {
    /// Sets a header field, in place of one with the same name in any spelling.
    ///
    /// What `setValue(_:forHTTPHeaderField:)` does, in a third of the time, for hooks and prepare steps. It does not ignore what
    /// cannot be sent: on Linux, Foundation silently drops a value with a line end, so that the request is sent without the field.
    ///
    /// - Parameters:
    ///   - name: a token (RFC 9110 §5.1).
    ///   - value: the value; it must not contain CR, LF or NUL (RFC 9110 §5.5).
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`; nothing was changed then.
    public mutating func setField(_ name: String, to value: String) throws {
        if let refusal = URLRequest.refusal(ofField: name, value: value) { throw refusal }
        if let name = FieldName(name) { setFields([(name, value)]) }
    }

    /// The value of a header field; nil if there is none.
    func field(_ name: FieldName) -> String? {
        guard let fields = allHTTPHeaderFields else { return nil }
        return fields.first { name.isSpelled($0.key) }?.value
    }

    /// Sets fields, or removes those whose value is nil, in one step.
    ///
    /// - Returns: the values that were there before.
    @discardableResult
    mutating func setFields(_ changes: [(name: FieldName, value: String?)]) -> [FieldName: String] {
        var fields = allHTTPHeaderFields ?? [:]
        var former: [FieldName: String] = [:]
        for (name, value) in changes {
            if let spelled = fields.keys.first(where: { name.isSpelled($0) }) {
                former[name] = fields.removeValue(forKey: spelled)
                // The property may keep what its new value lacks, on systems where it only adds.
                if value == nil { setValue(nil, forHTTPHeaderField: name.rawName) }
            }
            fields[name.rawName] = value
        }
        allHTTPHeaderFields = fields
        return former
    }

    /// Rejects a method and fields that would be read as others, or as several (RFC 9110 §9.1, §5.1, §5.5), and an invalid port, for
    /// which some clients end the process.
    ///
    /// Called after prepare steps, and again by the transports of this package, for what hooks and callers set.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`.
    package func checkHead() throws {
        guard url?.port.map({ 1...65_535 ~= $0 }) ?? true else {
            throw ServiceError(.badRequest, "The URL's port is out of range. Use 1 to 65535.", progress: .notSent)
        }
        guard httpMethod.map({ !$0.isEmpty && $0.utf8.allSatisfy(\.isTokenCharacter) }) ?? true else {
            throw ServiceError(
                .badRequest,
                "The request's method contains a character that methods must not have, or is empty. Use a name such as GET.",
                progress: .notSent
            )
        }
        for (name, value) in allHTTPHeaderFields ?? [:] {
            if let refusal = URLRequest.refusal(ofField: name, value: value) { throw refusal }
        }
    }

    private static func refusal(ofField name: String, value: String) -> ServiceError? {
        let isName = !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter)
        guard !isName || value.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) else { return nil }
        let shown = isName ? "The value of the field \(name)" : "The name of a field"
        return ServiceError(
            .badRequest,
            "\(shown) contains a character that fields must not have, such as a line end; remove it from what a caller or a "
                + "prepare step sets.",
            progress: .notSent
        )
    }
}

/// Removing what was added to a request for one origin and must not be sent to another.
extension URLRequest {
    /// Removes what was added to the request or changed in it since it was `earlier`: header fields, except those known to contain
    /// no credential, and the query and the userinfo of the URL. What was removed stays removed.
    mutating func withholdAdditions(to earlier: URLRequest) {
        withholdFields(addedTo: earlier.allHTTPHeaderFields ?? [:])
        if url != earlier.url { withholdURLParts(addedTo: earlier.url) }
    }

    /// Removes the header fields that `earlier` does not have, or has with another value, except those known to contain no
    /// credential.
    mutating func withholdFields(addedTo earlier: [String: String]) {
        for name in fieldsAdded(to: earlier) { setValue(nil, forHTTPHeaderField: name) }
    }

    /// The names of the header fields that `earlier` does not have, or has with another value, except those known to contain no
    /// credential.
    package func fieldsAdded(to earlier: [String: String]) -> [String] {
        let fields = allHTTPHeaderFields ?? [:]
        guard fields != earlier else { return [] }
        var added: [String] = []
        for (name, value) in fields where earlier[name] != value && !NonCredentialFields.contains(named: name) {
            let isOnlySpelledOtherwise = earlier.contains {
                $0.value == value && $0.key.lowercased() == name.lowercased()
            }
            if !isOnlySpelledOtherwise { added.append(name) }
        }
        return added
    }

    /// A key in a query and a password in a URL are credentials too.
    private mutating func withholdURLParts(addedTo earlier: URL?) {
        guard let url, let earlier, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let own = URLComponents(url: earlier, resolvingAgainstBaseURL: true)
        else { return }
        let items = (parts.percentEncodedQuery ?? "").split(separator: "&")
        let ownItems = Set((own.percentEncodedQuery ?? "").split(separator: "&"))
        let addsItems = !items.allSatisfy { ownItems.contains($0) }
        let addsUser =
            (parts.percentEncodedUser != nil || parts.percentEncodedPassword != nil)
            && (parts.percentEncodedUser, parts.percentEncodedPassword)
                != (own.percentEncodedUser, own.percentEncodedPassword)
        guard addsItems || addsUser else { return }
        // An item with a changed spelling is changed, and half of the redirect's query would be a different query.
        if addsItems { parts.percentEncodedQuery = own.percentEncodedQuery }
        if addsUser {
            parts.percentEncodedUser = own.percentEncodedUser
            parts.percentEncodedPassword = own.percentEncodedPassword
        }
        self.url = parts.url ?? earlier
    }
}

/// The request fields that are known to contain no credential.
///
/// Only these of the fields that hooks and prepare steps add for the origin where a call began may be sent to another origin. The
/// list names what may be sent, not what must be withheld, because nobody can list the fields that contain credentials. These
/// registered fields are not in it: From, Referer, Origin and Forwarded, which tell a stranger whose request it is or where it came
/// from; Idempotency-Key, which belongs to one server; Host, which names the first origin; If (RFC 4918 §10.4), whose lock tokens
/// are capabilities.
package enum NonCredentialFields {
    /// Whether a field is known to contain no credential, no matter who set it.
    package static func contains(_ name: FieldName) -> Bool { names.contains(name.canonicalName) }

    /// Whether a field is known to contain no credential; false for an invalid name.
    package static func contains(named name: String) -> Bool { FieldName(name).map { contains($0) } ?? false }

    private static let names: Set<String> = [
        // What the client understands and prefers (RFC 9110 §12.5, RFC 7089, RFC 3229, RFC 7240, RFC 9218).
        "accept", "accept-charset", "accept-datetime", "accept-encoding", "accept-language", "a-im", "prefer",
        "priority", "save-data", "te", "upgrade-insecure-requests", "user-agent",
        // How caches should treat the request, and which part or state it asks for (RFC 9111, RFC 9110 §13, §14).
        "cache-control", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
        "max-forwards", "pragma", "range",
        // The content and its form (RFC 9110 §8, RFC 9530, RFC 6266).
        "content-digest", "content-disposition", "content-encoding", "content-language", "content-length",
        "content-location", "content-md5", "content-range", "content-type", "digest", "repr-digest", "trailer",
        "transfer-encoding", "want-content-digest", "want-digest", "want-repr-digest",
        // How the message is sent (RFC 9110 §6.6.1, §7.6.1, §10.1.1, RFC 8470).
        "connection", "date", "early-data", "expect", "keep-alive",
        // What the user refuses (Tracking Preference Expression, Global Privacy Control).
        "dnt", "sec-gpc",
        // What a browser says about itself and the fetch (Fetch Metadata, Client Hints).
        "device-memory", "downlink", "dpr", "ect", "rtt", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform",
        "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "viewport-width", "width",
        "x-requested-with",
        // Identifiers that connect the logs and traces of several systems (W3C Trace Context and Baggage, B3, vendors').
        "b3", "baggage", "correlation-id", "request-id", "sentry-trace", "traceparent", "tracestate", "uber-trace-id",
        "x-amzn-trace-id", "x-b3-flags", "x-b3-parentspanid", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid",
        "x-cloud-trace-context", "x-correlation-id", "x-request-id",
    ]
}

extension FieldName {
    /// Whether the field may contain a credential as far as is known. An idempotency key says nothing about who asks.
    package var mayHoldCredential: Bool { !NonCredentialFields.contains(self) && self != .idempotencyKey }
}

/// A key by which a server recognizes the copies of one request (draft-ietf-httpapi-idempotency-key-header-07).
///
/// A random UUID (RFC 9562 §5.4), sent as a structured-field String.
struct IdempotencyKey: Sendable, Hashable {
    /// The text between the quotation marks.
    let text: String

    /// A new key of 122 random bits.
    init(using generator: inout some RandomNumberGenerator) {
        // The version and the variant take 4 and 2 bits of each half.
        let high = generator.next() & ~0xF000 | 0x4000
        let low = generator.next() & ~(0b11 << 62) | (0b10 << 62)
        let digits = IdempotencyKey.hex(high) + IdempotencyKey.hex(low)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        self.text = text
    }

    /// The value of the field: a structured-field String, so in quotation marks (RFC 9651 §3.3.3).
    var fieldValue: String { "\"\(text)\"" }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension RetryRules {
    /// Adds an idempotency key for a server that is known to support it, once for all attempts and hedges of a call.
    ///
    /// Only if ``mintsIdempotencyKey`` is on and the method is POST or PATCH; a key from the caller stays. Call it once per call,
    /// above redirects: within the origin they keep the key, and across origins they drop it.
    ///
    /// - Parameter generator: the source of the key; seeded in tests.
    func addIdempotencyKey(to request: inout URLRequest, using generator: inout some RandomNumberGenerator) {
        let name = FieldName.idempotencyKey.rawName
        guard mintsIdempotencyKey, [.post, .patch].contains(RequestMethod(request)) else { return }
        guard request.value(forHTTPHeaderField: name) == nil else { return }
        request.setValue(IdempotencyKey(using: &generator).fieldValue, forHTTPHeaderField: name)
    }
}
