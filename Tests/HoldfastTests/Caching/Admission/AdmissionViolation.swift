// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is wrong with one answer.
struct AdmissionViolation: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String, Sendable, CaseIterable {
        /// The body is of a response that may not answer this user (RFC 9111 §3, §3.5, §5.2.2.7).
        case leakedBody
        /// A field is of a response that may not answer this user (RFC 9111 §3, §3.5, §5.2.2.7), or one that a qualified
        /// `private` or `no-cache` names (§5.2.2.4).
        case leakedField
        /// Something is of an exchange with no-store (RFC 9111 §5.2.1.5, §5.2.2.5).
        case noStoreReused
        /// The nominated fields do not match (RFC 9111 §4.1).
        case unmatchedVary
        /// It was stale, and nothing allowed that (RFC 9111 §4.2.4), or needed validation (§5.2.2.4).
        case stale
        /// The request asked for an answer that the origin confirmed (RFC 9111 §5.2.1.1, §5.2.1.4).
        case notValidated
        /// The same, and the answer came from an exchange that another call had begun before.
        case joinedEarlier
        /// Its URI was invalidated after it was asked for (RFC 9111 §4.4).
        case invalidated
        /// Something older took the place of something newer (RFC 9111 §4, §4.3.4; §3.4 for parts).
        case olderOverNewer
        /// Bytes without the same strong validator, or of two content codings, were joined (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
        case mixedParts
        /// Incomplete content was taken for the whole, or bytes stand in the wrong place (RFC 9111 §3.3).
        case incomplete
        /// A digest is not that of the bytes it stands with (RFC 9530 §2, §3).
        case wrongDigest
        /// The response is to another URI, another method or a request with other content (RFC 9111 §2, §4).
        case wrongKey
        /// A 304 updated a response that it does not select (RFC 9111 §4.3.4).
        case wrongSelection
        /// A 304 to a caller without a condition that holds (RFC 9110 §13.1.2, §15.4.5).
        case wrongCondition
        /// A request was sent for a call that forbids it (RFC 9111 §5.2.1.7).
        case sentAlthoughOnlyIfCached
        /// The call never ended.
        case stuck
    }

    /// By what kind of exchange it came about, so that one fault can be told from another.
    enum Source: String, Sendable {
        case complete, part, notModified, head, unsafe, content, otherPath, answer

        init(_ exchange: AdmissionExchange) {
            if exchange.call.isUnsafe {
                self = .unsafe
            } else if exchange.answer?.status == 304 {
                self = .notModified
            } else if exchange.call.method == "HEAD" {
                self = .head
            } else if exchange.hasContent {
                self = .content
            } else {
                self = exchange.answer?.status == 206 ? .part : .complete
            }
        }
    }

    /// What makes two violations the same fault, as far as that can be seen from outside.
    struct Fault: Sendable, Hashable, Comparable, CustomStringConvertible {
        var kind: Kind
        var source: Source
        /// Whether the cache could not see the credential when it looked the request up.
        var hidesCredential: Bool

        var description: String {
            "\(kind.rawValue) by \(source.rawValue)\(hidesCredential ? ", credential added below the look-up" : "")"
        }

        static func < (left: Self, right: Self) -> Bool { left.description < right.description }
    }

    var fault: Fault
    var call: Int
    var text: String

    var kind: Kind { fault.kind }
    var description: String { "\(fault) in the answer to #\(call): \(text)" }
}
