// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// What a request's fields say about its content and its connection, from one pass over the lines.
    struct RequestFraming: Sendable, Hashable {
        /// How the content ends.
        enum Content: Sendable, Hashable {
            case none
            case length(Int)
            case chunked
        }

        /// How the content ends (RFC 9112 §6.3).
        private(set) var content = Content.none
        /// Whether the client allows the connection to stay open after the response (RFC 9112 §9.3).
        private(set) var keepsAlive: Bool
        /// Whether the client waits for a 100 before it sends its content (RFC 9110 §10.1.1).
        private(set) var awaitsContinue = false
        /// Whether it has an unknown expectation.
        private(set) var expectsUnknown = false

        /// Reads the fields of a request.
        ///
        /// - Throws: 400 and 501 for anything that two recipients could read differently, which is how requests are
        ///   smuggled (RFC 9112 §11.2).
        init(_ fields: HeaderFields, version: HTTPVersion) throws(MessageFault) {
            keepsAlive = version == .http11
            var length: Int?
            var codings: [Substring]?
            var hosts = 0
            var closes = false
            for line in fields {
                switch line.name {
                case .host:
                    hosts += 1
                    guard hosts == 1 else { throw MessageFault("There are two Host fields.") }
                    var host = line.value
                    guard host.withUTF8({ HostField.isValid(UnsafeRawBufferPointer($0)) }) else {
                        throw MessageFault("The Host field is not a valid host.")
                    }
                case .contentLength:
                    guard length == nil else { throw MessageFault("There are two Content-Length fields.") }
                    guard let number = RequestFraming.length(line.value[...]) else {
                        throw MessageFault("The Content-Length is not a number of bytes.")
                    }
                    length = number
                case .transferEncoding:
                    codings = (codings ?? []) + RequestFraming.members(line.value)
                case .connection:
                    for member in RequestFraming.members(line.value) {
                        if RequestFraming.matches(member, word: "close") { closes = true }
                        if RequestFraming.matches(member, word: "keep-alive") { keepsAlive = true }
                    }
                case .expect:
                    guard version == .http11 else { continue }
                    if RequestFraming.matches(line.value[...], word: "100-continue") {
                        awaitsContinue = true
                    } else {
                        expectsUnknown = true
                    }
                default:
                    continue
                }
            }
            guard hosts == 1 || version == .http10 else { throw MessageFault("There is no Host field.") }
            if closes { keepsAlive = false }
            if let codings {
                guard version == .http11 else { throw MessageFault("HTTP/1.0 has no Transfer-Encoding.") }
                guard length == nil else {
                    throw MessageFault("Content-Length and Transfer-Encoding contradict each other.")
                }
                try RequestFraming.requireChunked(codings)
                content = .chunked
            } else if let length, length > 0 {
                content = .length(length)
            }
            if content == .none { awaitsContinue = false }
        }

        /// The number in up to 18 decimal digits, so that nothing overflows; nil for anything else.
        static func length(_ text: Substring) -> Int? {
            text.utf8.count > 18 ? nil : FieldScanner.number(text.utf8, limit: .max).map { Int($0) }
        }

        private static func requireChunked(_ codings: [Substring]) throws(MessageFault) {
            for coding in codings {
                guard !coding.isEmpty, coding.utf8.allSatisfy(FieldLines.isToken) else {
                    throw MessageFault("The Transfer-Encoding is not a list of codings.")
                }
            }
            let chunked = codings.indices.filter { matches(codings[$0], word: "chunked") }
            guard chunked == [codings.count - 1] else {
                throw MessageFault("The Transfer-Encoding does not end in chunked, or has it twice.")
            }
            guard codings.count == 1 else {
                throw MessageFault(501, message: "The only supported transfer coding is chunked.")
            }
        }

        static func members(_ value: String) -> [Substring] {
            value.split(separator: ",", omittingEmptySubsequences: false).map { member in
                var member = member
                while member.utf8.first?.isBlank == true { member.removeFirst() }
                while member.utf8.last?.isBlank == true { member.removeLast() }
                return member
            }
        }

        /// Whether a text equals a word, ignoring case; the word is in lower case.
        static func matches(_ text: Substring, word: StaticString) -> Bool {
            guard text.utf8.count == word.utf8CodeUnitCount else { return false }
            return word.withUTF8Buffer { word in
                zip(text.utf8, word).allSatisfy { $0.lowerCased == $1 }
            }
        }
    }

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
        /// Whether the connection can be reused once the body has been read.
        var isPersistent: Bool

        /// Determines the framing of a final head in response to `method`.
        ///
        /// A Content-Length next to Transfer-Encoding is wrong, and is removed from the head (RFC 9112 §6.3).
        ///
        /// - Throws: if the fields contradict each other.
        static func decide(
            _ head: inout ResponseHeadParser.Head,
            answering method: RequestMethod
        ) throws(MessageFault) -> ResponseFraming {
            let isPersistent = persists(head)
            let status = head.head.status
            if method == .head || status == 204 || status == 304 {
                return ResponseFraming(body: .none, isPersistent: isPersistent)
            }
            if head.head.fields.contains(.transferEncoding) {
                let hasLength = head.head.fields.contains(.contentLength)
                head.head.fields.removeAll(.contentLength)
                guard try isChunked(head.head.fields.values(of: .transferEncoding)) else {
                    return ResponseFraming(body: .untilClose, isPersistent: false)
                }
                return ResponseFraming(body: .chunked, isPersistent: isPersistent && !hasLength && !head.isVersion10)
            }
            guard let length = try length(head.head.fields) else {
                return ResponseFraming(body: .untilClose, isPersistent: false)
            }
            return ResponseFraming(body: .length(length), isPersistent: isPersistent)
        }

        /// The single length that all lines and members give; nil without any.
        static func length(_ fields: HeaderFields) throws(MessageFault) -> Int? {
            var found: Int?
            for line in fields where line.name == .contentLength {
                for member in RequestFraming.members(line.value) {
                    guard let length = RequestFraming.length(member), found ?? length == length else {
                        throw unclearLength
                    }
                    found = length
                }
            }
            return found
        }

        private static let unclearLength = MessageFault(
            "Content-Length is not a number, or has several different ones, so the end of the body is unknown."
        )

        /// Whether the content is in chunks; if not, it ends with the connection (RFC 9112 §6.3).
        ///
        /// - Throws: if it is in a coding that the proxy would have to decode: the client is not told of it, and would take the coded
        ///   octets for the content (RFC 9112 §6.1, §7). Names that no registry has are servers' own; their content is as it is.
        private static func isChunked(_ lines: [String]) throws(MessageFault) -> Bool {
            let codings = lines.flatMap { FieldScanner.members(of: $0) }.map { $0.loweringASCII() }
            if codings == ["chunked"] { return true }
            guard codings.allSatisfy({ !registered.contains($0) }) else {
                throw MessageFault(
                    "Transfer-Encoding has codings other than a single chunked, which the proxy cannot decode."
                )
            }
            return false
        }

        private static let registered: Set<String> = ["chunked", "gzip", "x-gzip", "deflate", "compress", "x-compress"]

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
