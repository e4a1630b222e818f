// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

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
