// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    internal import Foundation

    /// Reads a document's markup, rejects what is obviously malformed or beyond the limits, and rewrites the rest so that the
    /// platform's parser can process it.
    ///
    /// A document type declaration is always rejected, so there are no entities but the five of XML itself: nothing can expand,
    /// and nothing outside the document is ever read. Comments and processing instructions are removed, because Foundation on
    /// Linux reads a null pointer if an instruction is empty. Texts are trimmed here, because XMLCoder receives them in
    /// pieces and would drop spaces between references.
    struct XMLSanitizer {
        private let bytes: [UInt8]
        private let limits: XMLLimits
        private let trimsTexts: Bool
        private var place = 0
        private var depth = 0
        private var nodes = 0
        private var hasRoot = false
        /// The text since the last tag.
        private var run: [UInt8] = []
        private var written: [UInt8] = []

        private init(_ bytes: [UInt8], limits: XMLLimits, trimsTexts: Bool) {
            self.bytes = bytes
            self.limits = limits
            self.trimsTexts = trimsTexts
            written.reserveCapacity(bytes.count)
        }

        /// The document, rewritten for a parser.
        ///
        /// - Parameters:
        ///   - bytes: UTF-8, without a declaration.
        ///   - trimsTexts: whether texts lose the white space around them.
        /// - Throws: `DecodingError` if it is rejected.
        static func sanitized(_ bytes: [UInt8], limits: XMLLimits, trimsTexts: Bool) throws -> [UInt8] {
            guard bytes.count <= limits.bytes else {
                throw XMLText.refusal("It has \(bytes.count) bytes, but only \(limits.bytes) are allowed.")
            }
            var sanitizer = XMLSanitizer(bytes, limits: limits, trimsTexts: trimsTexts)
            try sanitizer.read()
            return sanitizer.written
        }

        private mutating func read() throws {
            while place < bytes.count {
                if bytes[place] == UInt8(ascii: "<") { try markup() } else { try text() }
            }
            guard hasRoot, depth == 0 else { throw XMLText.refusal("It ends before its outermost element does.") }
        }

        private mutating func text() throws {
            let end = bytes[place...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
            guard depth > 0 else {
                guard bytes[place..<end].allSatisfy(\.isXMLSpace) else {
                    throw XMLText.refusal("There is text outside its outermost element.")
                }
                place = end
                return
            }
            while place < end {
                let byte = bytes[place]
                if byte == UInt8(ascii: "&") {
                    run += try Array(String(reference(before: end)).utf8)
                } else {
                    try checkCharacter(byte)
                    addText(at: place)
                    place += 1
                }
            }
        }

        /// Adds a byte of the document to the text. Line ends become LF (XML 1.0 §2.11), which Foundation's parser on Linux leaves
        /// undone in CDATA sections.
        private mutating func addText(at index: Int) {
            let isReturn = bytes[index] == UInt8(ascii: "\r")
            if isReturn, index + 1 < bytes.endIndex, bytes[index + 1] == UInt8(ascii: "\n") { return }
            run.append(isReturn ? UInt8(ascii: "\n") : bytes[index])
        }

        private func checkCharacter(_ byte: UInt8) throws {
            guard byte >= 0x20 || byte.isXMLSpace else {
                throw XMLText.refusal("It contains the control character \(byte), which XML does not allow.")
            }
        }

        /// Skips a reference (XML 1.0 §4.1) and returns the character that it stands for.
        private mutating func reference(before end: Int) throws -> Character {
            let start = place + 1
            if start < end, let stop = bytes[start..<min(end, start + 12)].firstIndex(of: UInt8(ascii: ";")),
                let character = XMLSanitizer.character(String(decoding: bytes[start..<stop], as: UTF8.self))
            {
                place = stop + 1
                return character
            }
            throw XMLText.refusal("It contains an & that does not begin one of XML's own references.")
        }

        private static func character(_ name: String) -> Character? {
            guard name.hasPrefix("#") else {
                return ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][name]
            }
            let digits = name.dropFirst()
            // A number in Swift may have a sign, one in XML may not.
            guard !digits.contains("+") else { return nil }
            let code = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            guard let code, code >= 0x20 || [0x09, 0x0A, 0x0D].contains(code), code != 0xFFFE, code != 0xFFFF else {
                return nil
            }
            return Unicode.Scalar(code).map { Character($0) }
        }

        private mutating func markup() throws {
            let rest = bytes[place...]
            if rest.starts(with: "<!--".utf8) {
                try skip(past: "-->", from: place + 4)
            } else if rest.starts(with: "<![CDATA[".utf8), depth > 0 {
                let start = place + 9
                try skip(past: "]]>", from: start)
                for index in start..<(place - 3) {
                    try checkCharacter(bytes[index])
                    addText(at: index)
                }
            } else if rest.starts(with: "<!".utf8) {
                throw XMLText.refusal(
                    "It has a document type declaration, which is not allowed. Request it without one."
                )
            } else if rest.starts(with: "<?".utf8) {
                try skip(past: "?>", from: place + 2)
            } else {
                writeRun()
                let start = place
                try tag()
                written += bytes[start..<place]
            }
        }

        /// Writes the text that ends here.
        ///
        /// Not as a CDATA section, which XMLCoder keeps under another name: a top-level array, and content with elements among
        /// its text, would not have it. But XMLCoder copies a text for each of its pieces, which are each reference and each
        /// 300 characters, so where that would take long, one section is better.
        private mutating func writeRun() {
            if trimsTexts {
                run = Array(String(decoding: run, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines).utf8)
            }
            let references = run.count { $0.needsReference }
            if (references + run.count / 300) * run.count < 1 << 24 {
                for byte in run {
                    if byte.needsReference { written += "&#\(byte);".utf8 } else { written.append(byte) }
                }
            } else {
                written += "<![CDATA[".utf8
                var rest = run[...]
                while let end = rest.firstRange(of: Array("]]>".utf8)) {
                    written += rest[..<end.lowerBound] + Array("]]]]><![CDATA[>".utf8)
                    rest = rest[end.upperBound...]
                }
                written += rest + Array("]]>".utf8)
            }
            run.removeAll(keepingCapacity: true)
        }

        private mutating func skip(past end: String, from start: Int) throws {
            guard start <= bytes.count, let found = bytes[start...].firstRange(of: Array(end.utf8)) else {
                throw XMLText.refusal("It ends inside a comment, a section or an instruction.")
            }
            place = found.upperBound
        }

        private mutating func tag() throws {
            place += 1
            if place < bytes.count, bytes[place] == UInt8(ascii: "/") {
                place += 1
                try name()
                skipSpace()
                try expect(">")
                depth -= 1
                guard depth >= 0 else { throw XMLText.refusal("It closes an element that is not open.") }
                return
            }
            guard depth > 0 || !hasRoot else { throw XMLText.refusal("It has two outermost elements.") }
            hasRoot = true
            try name()
            try count()
            guard try !attributes() else { return }
            depth += 1
            guard depth <= min(max(limits.depth, 1), 256) else {
                throw XMLText.refusal("Its elements are nested deeper than \(limits.depth) levels.")
            }
        }

        /// Skips attributes and the end of a tag; returns whether the tag also closes the element.
        private mutating func attributes() throws -> Bool {
            var number = 0
            while true {
                let before = place
                skipSpace()
                guard place < bytes.count else { throw XMLText.refusal("It ends inside a tag.") }
                if bytes[place] == UInt8(ascii: ">") {
                    place += 1
                    return false
                }
                if bytes[place] == UInt8(ascii: "/") {
                    place += 1
                    try expect(">")
                    return true
                }
                guard place > before else { throw XMLText.refusal("It contains a malformed tag.") }
                number += 1
                guard number <= limits.attributes else {
                    throw XMLText.refusal("An element has more than \(limits.attributes) attributes.")
                }
                try count()
                try name()
                skipSpace()
                try expect("=")
                skipSpace()
                try quoted()
            }
        }

        private mutating func quoted() throws {
            guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") || bytes[place] == UInt8(ascii: "'"),
                let end = bytes[(place + 1)...].firstIndex(of: bytes[place])
            else { throw XMLText.refusal("An attribute has no quoted value.") }
            place += 1
            while place < end {
                let byte = bytes[place]
                if byte == UInt8(ascii: "&") {
                    _ = try reference(before: end)
                } else {
                    guard byte != UInt8(ascii: "<") else { throw XMLText.refusal("An attribute's value contains a <.") }
                    try checkCharacter(byte)
                    place += 1
                }
            }
            place = end + 1
        }

        private mutating func name() throws {
            let start = place
            while place < bytes.count, !bytes[place].isXMLSpace, !"<>/=\"'&".utf8.contains(bytes[place]) { place += 1 }
            guard place > start, bytes[start..<place].allSatisfy({ $0 > 0x20 }), !bytes[start].isDigitOrPunctuation
            else {
                throw XMLText.refusal("It contains a tag or an attribute whose name XML does not allow.")
            }
        }

        private mutating func skipSpace() {
            while place < bytes.count, bytes[place].isXMLSpace { place += 1 }
        }

        private mutating func expect(_ character: Unicode.Scalar) throws {
            guard place < bytes.count, bytes[place] == UInt8(ascii: character) else {
                throw XMLText.refusal("It contains a malformed tag: a \(character) is missing.")
            }
            place += 1
        }

        private mutating func count() throws {
            nodes += 1
            guard nodes <= limits.nodes else {
                throw XMLText.refusal("It has more than \(limits.nodes) elements and attributes.")
            }
        }
    }

    extension UInt8 {
        /// A character that a text contains only as a reference: a return would become a line feed.
        fileprivate var needsReference: Bool { "<>&\r".utf8.contains(self) }

        /// A character that no name may begin with.
        fileprivate var isDigitOrPunctuation: Bool {
            (0x21...0x39).contains(self) || (0x3B...0x40).contains(self) || (0x5B...0x5E).contains(self) || self == 0x60
                || (0x7B...0x7F).contains(self)
        }
    }

    /// Converts a document to UTF-8 without a declaration, so that a parser cannot be told to read it as anything else.
    enum XMLText {
        /// The document's bytes in UTF-8.
        ///
        /// - Throws: `DecodingError` if its encoding is not UTF-8, US-ASCII, ISO-8859-1, Windows-1252 or UTF-16, or if its
        ///   bytes are not in that encoding.
        static func utf8(of data: Data) throws -> [UInt8] {
            let start = Array(data.prefix(4))
            if start.starts(with: [0xEF, 0xBB, 0xBF]) {
                return try withoutDeclaration(validated(Array(data.dropFirst(3))))
            }
            let isLittle = start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0x3C, 0, 0x3F, 0])
            if isLittle || start.starts(with: [0xFE, 0xFF]) || start.starts(with: [0, 0x3C, 0, 0x3F]) {
                let marked = start.first == 0xFF || start.first == 0xFE
                return try withoutDeclaration(
                    converted(data.dropFirst(marked ? 2 : 0), encoding: isLittle ? .utf16LittleEndian : .utf16BigEndian)
                )
            }
            let bytes = Array(data)
            switch declaredEncoding(of: bytes) {
            case nil, "utf-8", "utf8", "us-ascii", "ascii": return try withoutDeclaration(validated(bytes))
            case "iso-8859-1", "latin1": return try withoutDeclaration(converted(data, encoding: .isoLatin1))
            case "windows-1252", "cp1252": return try withoutDeclaration(converted(data, encoding: .windowsCP1252))
            case let name?: throw refusal("Its encoding \(name.prefix(40)) is not supported. Request UTF-8.")
            }
        }

        static func refusal(_ reason: String) -> DecodingError {
            .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "The XML was rejected. \(reason)"))
        }

        private static func validated(_ bytes: [UInt8]) throws -> [UInt8] {
            guard String(validating: bytes, as: UTF8.self) != nil else { throw refusal("It is not UTF-8.") }
            return bytes
        }

        private static func converted(_ data: Data, encoding: String.Encoding) throws -> [UInt8] {
            guard let text = String(data: data, encoding: encoding) else {
                throw refusal("Its bytes are not in its declared encoding.")
            }
            return Array(text.utf8)
        }

        /// The declaration's text (XML 1.0 §2.8); nil if there is none.
        private static func declaration(of bytes: [UInt8]) -> ArraySlice<UInt8>? {
            guard bytes.starts(with: Array("<?xml".utf8)), bytes.count > 5, bytes[5].isXMLSpace,
                let end = bytes.prefix(512).firstRange(of: Array("?>".utf8))
            else { return nil }
            return bytes[5..<end.lowerBound]
        }

        private static func declaredEncoding(of bytes: [UInt8]) -> String? {
            guard let declaration = declaration(of: bytes) else { return nil }
            let text = String(decoding: declaration, as: UTF8.self)
            guard let found = text.firstMatch(of: #/\sencoding\s*=\s*["']([^"']*)["']/#) else { return nil }
            return found.1.lowercased()
        }

        private static func withoutDeclaration(_ bytes: [UInt8]) -> [UInt8] {
            guard let declaration = declaration(of: bytes) else { return bytes }
            return Array(bytes[(declaration.endIndex + 2)...])
        }
    }

    extension UInt8 {
        /// White space (S in XML 1.0 §2.3).
        var isXMLSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
    }
#endif
