// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics

    /// A line of an access log in the common or combined form, with a virtual host before it or not.
    ///
    ///     host ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.1" 200 2326 "referer" "agent"
    ///
    /// What stands behind the size is not read.
    struct AccessLogLine: Sendable, Hashable {
        /// What is wrong with a line, in a few words.
        struct Malformation: Error, Hashable, CustomStringConvertible {
            let description: String

            static let time = Malformation(description: "no [time] in it")
            static let request = Malformation(description: "no \"request\" after the time")
            static let status = Malformation(description: "no status after the request")
            static let size = Malformation(description: "no number of bytes after the status")
            static let tooLong = Malformation(description: "longer than 64 KiB")
        }

        /// The virtual host that was asked, where the log tells it.
        let host: String?
        let time: Timestamp
        /// The method; nil where the client sent no request line.
        let method: String?
        /// The target as it was sent; "" where the client sent no request line.
        let target: String
        let status: StatusCode
        /// Bytes of the body; nil where the log has `-`.
        let bytes: Int?

        /// Reads a line without its end.
        init(_ line: ArraySlice<UInt8>) throws(Malformation) {
            if line.count >= LineReader.longestLine { throw .tooLong }
            guard let (before, time, rest) = Self.time(in: line) else { throw .time }
            self.time = time
            host = Self.virtualHost(before)
            var after = rest.drop { $0 == Self.space }
            guard after.first == Self.quote, let end = Self.closingQuote(after) else { throw .request }
            let request = after[(after.startIndex + 1)..<end]
            after = after[(end + 1)...]
            guard let word = Self.word(&after), word.count == 3, let number = FieldScanner.number(word, limit: 999)
            else {
                throw .status
            }
            status = StatusCode(Int(number))
            guard let word = Self.word(&after) else { throw .size }
            if word.elementsEqual([UInt8(ascii: "-")]) {
                bytes = nil
            } else {
                guard let number = FieldScanner.number(word, limit: Int64(Int.max)) else { throw .size }
                bytes = Int(clamping: number)
            }
            (method, target) = Self.split(request)
        }

        private static let space = UInt8(ascii: " ")
        private static let quote = UInt8(ascii: "\"")

        /// The bracket that holds a time; a user's name may have brackets of its own.
        private static func time(
            in line: ArraySlice<UInt8>
        ) -> (before: ArraySlice<UInt8>, time: Timestamp, rest: ArraySlice<UInt8>)? {
            var from = line.startIndex
            for _ in 0..<8 {
                guard let open = line[from...].firstIndex(of: UInt8(ascii: "[")),
                    let close = line[open...].firstIndex(of: UInt8(ascii: "]"))
                else { return nil }
                if let time = LogTime.logged(line[(open + 1)..<close]) {
                    return (line[..<open], time, line[(close + 1)...])
                }
                from = open + 1
            }
            return nil
        }

        /// `host:port` before the address of the client.
        private static func virtualHost(_ before: ArraySlice<UInt8>) -> String? {
            let words = before.split(separator: space)
            guard words.count >= 4, let colon = words[0].lastIndex(of: UInt8(ascii: ":")),
                words[0][(colon + 1)...].allSatisfy(\.isDigit),
                words[1].contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ":") })
            else { return nil }
            return String(decoding: words[0], as: UTF8.self)
        }

        /// The quotation mark that ends a text; one behind a backslash does not.
        private static func closingQuote(_ text: ArraySlice<UInt8>) -> Int? {
            var index = text.startIndex + 1
            while index < text.endIndex {
                if text[index] == quote { return index }
                index += text[index] == UInt8(ascii: "\\") ? 2 : 1
            }
            return nil
        }

        private static func word(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
            text = text.drop { $0 == space }
            let word = text.prefix { $0 != space && $0 != UInt8(ascii: "\r") }
            text = text.dropFirst(word.count)
            return word.isEmpty ? nil : word
        }

        /// `GET /a HTTP/1.1`; a target may hold spaces, and HTTP/0.9 has no version.
        private static func split(_ request: ArraySlice<UInt8>) -> (String?, String) {
            guard let first = request.firstIndex(of: space),
                let method = RequestMethod(validating: String(decoding: request[..<first], as: UTF8.self))
            else { return (nil, "") }
            var target = request[(first + 1)...]
            if let last = target.lastIndex(of: space), target[(last + 1)...].starts(with: "HTTP/".utf8) {
                target = target[..<last]
            }
            return target.isEmpty ? (nil, "") : (method.rawValue, String(decoding: target, as: UTF8.self))
        }
    }
#endif
