// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// Where the body of a response ends, and whether its connection can carry another exchange (RFC 9112 §6.3, §9.3).
    struct ResponseFraming: Sendable, Hashable {
        /// What marks the end of a body.
        enum Body: Sendable, Hashable {
            /// There is none, whatever the fields say.
            case none
            case length(Int)
            case chunked
            case untilClose
        }

        var body: Body
        /// Whether the connection can be used again once the body has been read.
        var isPersistent: Bool

        /// Judges a final head that answers `method`.
        ///
        /// Where Content-Length stands beside Transfer-Encoding it is a lie, and taken off the head (RFC 9112 §6.3).
        ///
        /// - Throws: where the fields contradict themselves.
        static func judge(
            _ head: inout ResponseHeadParser.Head,
            answering method: RequestMethod
        ) throws(MessageFault) -> ResponseFraming {
            let isPersistent = persists(head)
            let status = head.head.status
            if method == .head || status == 204 || status == 304 {
                return ResponseFraming(body: .none, isPersistent: isPersistent)
            }
            if head.head.fields.contains(.transferEncoding) {
                let isChunked = try endsChunked(head.head.fields.values(of: .transferEncoding))
                guard isChunked else { return ResponseFraming(body: .untilClose, isPersistent: false) }
                let hasLength = head.head.fields.contains(.contentLength)
                head.head.fields.removeAll(.contentLength)
                return ResponseFraming(body: .chunked, isPersistent: isPersistent && !hasLength && !head.isVersion10)
            }
            guard let length = try length(head.head.fields) else {
                return ResponseFraming(body: .untilClose, isPersistent: false)
            }
            return ResponseFraming(body: .length(length), isPersistent: isPersistent)
        }

        /// The one length that all lines and members give; nil without any.
        private static func length(_ fields: HeaderFields) throws(MessageFault) -> Int? {
            var found: Int?
            for line in fields where line.name == .contentLength {
                for member in line.value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                    guard let length = number(member), found == nil || found == length else { throw unclearLength }
                    found = length
                }
            }
            return found
        }

        private static func number(_ text: Substring.UTF8View) -> Int? {
            var value = 0
            var digits = text.drop(while: \.isOptionalWhitespace)
            while digits.last?.isOptionalWhitespace == true { digits.removeLast() }
            guard !digits.isEmpty else { return nil }
            for byte in digits {
                guard byte.isDigit else { return nil }
                let (product, overflow) = value.multipliedReportingOverflow(by: 10)
                let (sum, carry) = product.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
                guard !overflow, !carry else { return nil }
                value = sum
            }
            return value
        }

        private static let unclearLength = MessageFault(
            "Content-Length is no number, or several different ones, so nobody knows where the body ends."
        )

        /// Whether chunked is the last coding.
        private static func endsChunked(_ lines: [String]) throws(MessageFault) -> Bool {
            let codings = lines.flatMap { FieldScanner.members(of: $0) }.map { $0.loweringASCII() }
            guard codings.filter({ $0 == "chunked" }).count <= 1 else {
                throw MessageFault("Transfer-Encoding names chunked twice.")
            }
            return codings.last == "chunked"
        }

        private static func persists(_ head: ResponseHeadParser.Head) -> Bool {
            var persists = !head.isVersion10
            for line in head.head.fields where line.name == .connection {
                for option in FieldScanner.members(of: line.value) {
                    switch option.loweringASCII() {
                    case "close": return false
                    case "keep-alive": persists = true
                    default: continue
                    }
                }
            }
            return persists
        }
    }
#endif
