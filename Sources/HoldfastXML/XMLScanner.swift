// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    /// Reads a document's markup and refuses what is malformed at a glance, what a parser should not be given, and what is beyond
    /// the limits.
    ///
    /// A document type declaration is refused whatever it says, so there are no entities but the five of XML itself: nothing can
    /// expand, and nothing outside the document is ever read.
    struct XMLScanner {
        /// The parser puts a text together piece by piece and copies what it has each time: bytes that may be copied so.
        private static let copyLimit = 2 << 30
        /// How many bytes of a text that is not ASCII come in one piece.
        private static let pieceLength = 300

        private let bytes: [UInt8]
        private let limits: XMLLimits
        private var place = 0
        private var depth = 0
        private var nodes = 0
        private var hasRoot = false
        private var copied = 0
        private var runLength = 0
        private var runPieces = 0

        private init(_ bytes: [UInt8], _ limits: XMLLimits) {
            self.bytes = bytes
            self.limits = limits
        }

        /// Reads a document in UTF-8, without its declaration.
        ///
        /// - Throws: `DecodingError` where it is refused.
        static func check(_ bytes: [UInt8], limits: XMLLimits) throws {
            guard bytes.count <= limits.bytes else {
                throw XMLText.refusal("It has \(bytes.count) bytes and \(limits.bytes) are allowed.")
            }
            var scanner = XMLScanner(bytes, limits)
            try scanner.scan()
        }

        private mutating func scan() throws {
            while place < bytes.count {
                if bytes[place] == UInt8(ascii: "<") { try markup() } else { try text() }
            }
            guard hasRoot, depth == 0 else { throw XMLText.refusal("It ends before its outermost element does.") }
        }

        private mutating func text() throws {
            let start = place
            let end = bytes[place...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
            guard depth > 0 else {
                guard bytes[start..<end].allSatisfy(\.isXMLSpace) else {
                    throw XMLText.refusal("There is text outside its outermost element.")
                }
                place = end
                return
            }
            runPieces += try characters(upTo: end) * 2 + 1
            runLength += end - start
            if bytes[start..<end].contains(where: { $0 > 127 }) { runPieces += (end - start) / XMLScanner.pieceLength }
        }

        /// Goes over characters and references up to `end`; returns how many references there were.
        private mutating func characters(upTo end: Int) throws -> Int {
            var references = 0
            while place < end {
                let byte = bytes[place]
                guard byte >= 0x20 || byte.isXMLSpace else {
                    throw XMLText.refusal("It contains the control character \(byte), which XML has no place for.")
                }
                place += 1
                guard byte == UInt8(ascii: "&") else { continue }
                references += 1
                guard let stop = bytes[place..<min(end, place + 12)].firstIndex(of: UInt8(ascii: ";")),
                    XMLScanner.isReference(String(decoding: bytes[place..<stop], as: UTF8.self))
                else { throw XMLText.refusal("It has an & that begins none of the references of XML itself.") }
                place = stop + 1
            }
            return references
        }

        private static func isReference(_ name: String) -> Bool {
            guard name.hasPrefix("#") else { return ["amp", "lt", "gt", "quot", "apos"].contains(name) }
            let digits = name.dropFirst()
            let code = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            guard let code, Unicode.Scalar(code) != nil else { return false }
            return code >= 0x20 && code != 0xFFFE && code != 0xFFFF || [0x09, 0x0A, 0x0D].contains(code)
        }

        private mutating func markup() throws {
            let rest = bytes[place...]
            if rest.starts(with: "<!--".utf8) {
                try skip(past: "-->", from: place + 4)
            } else if rest.starts(with: "<![CDATA[".utf8), depth > 0 {
                let start = place
                try skip(past: "]]>", from: place + 9)
                guard !bytes[start..<place].contains(where: { $0 < 0x20 && !$0.isXMLSpace }) else {
                    throw XMLText.refusal("It contains a control character, which XML has no place for.")
                }
                runPieces += 1 + (place - start) / XMLScanner.pieceLength
                runLength += place - start
            } else if rest.starts(with: "<!".utf8) {
                throw XMLText.refusal("It has a document type declaration, which is never read; ask for it without.")
            } else if rest.starts(with: "<?".utf8) {
                try skip(past: "?>", from: place + 2)
            } else {
                try tag()
            }
        }

        private mutating func skip(past end: String, from start: Int) throws {
            guard start <= bytes.count, let found = bytes[start...].firstRange(of: Array(end.utf8)) else {
                throw XMLText.refusal("It ends within a comment, a section or an instruction.")
            }
            place = found.upperBound
        }

        private mutating func tag() throws {
            try endRun()
            place += 1
            if place < bytes.count, bytes[place] == UInt8(ascii: "/") {
                place += 1
                try name()
                skipSpace()
                try expect(">")
                depth -= 1
                guard depth >= 0 else { throw XMLText.refusal("It closes an element that it has not opened.") }
                return
            }
            guard depth > 0 || !hasRoot else { throw XMLText.refusal("It has two outermost elements.") }
            hasRoot = true
            try name()
            try count()
            guard try !attributes() else { return }
            depth += 1
            guard depth <= min(max(limits.depth, 1), 256) else {
                throw XMLText.refusal("Its elements stand within each other deeper than \(limits.depth).")
            }
        }

        /// Goes over attributes and the end of a tag; returns whether the element is closed with it.
        private mutating func attributes() throws -> Bool {
            var number = 0
            while true {
                let before = place
                skipSpace()
                guard place < bytes.count else { throw XMLText.refusal("It ends within a tag.") }
                if bytes[place] == UInt8(ascii: ">") {
                    place += 1
                    return false
                }
                if bytes[place] == UInt8(ascii: "/") {
                    place += 1
                    try expect(">")
                    return true
                }
                guard place > before else { throw XMLText.refusal("A tag of it is malformed.") }
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
            guard !bytes[place..<end].contains(UInt8(ascii: "<")) else {
                throw XMLText.refusal("An attribute's value contains a <.")
            }
            _ = try characters(upTo: end)
            place = end + 1
        }

        private mutating func name() throws {
            let start = place
            while place < bytes.count, !bytes[place].isXMLSpace, !"<>/=\"'&".utf8.contains(bytes[place]) { place += 1 }
            guard place > start, bytes[start..<place].allSatisfy({ $0 > 0x20 }), !bytes[start].isDigitOrPunctuation
            else {
                throw XMLText.refusal("A tag or an attribute of it has no name that XML allows.")
            }
        }

        private mutating func skipSpace() {
            while place < bytes.count, bytes[place].isXMLSpace { place += 1 }
        }

        private mutating func expect(_ character: Unicode.Scalar) throws {
            guard place < bytes.count, bytes[place] == UInt8(ascii: character) else {
                throw XMLText.refusal("A tag of it is malformed: a \(character) is missing.")
            }
            place += 1
        }

        private mutating func count() throws {
            nodes += 1
            guard nodes <= limits.nodes else {
                throw XMLText.refusal("It has more than \(limits.nodes) elements and attributes.")
            }
        }

        /// Takes account of a text that ends here.
        private mutating func endRun() throws {
            let (product, overflows) = runLength.multipliedReportingOverflow(by: runPieces / 2)
            copied = overflows ? .max : copied.addingReportingOverflow(product).partialValue
            guard !overflows, copied >= 0, copied <= XMLScanner.copyLimit else {
                throw XMLText.refusal(
                    "A text of it is too long to be put together piece by piece; ask for smaller ones."
                )
            }
            runLength = 0
            runPieces = 0
        }
    }

    extension UInt8 {
        /// What no name may begin with.
        fileprivate var isDigitOrPunctuation: Bool {
            (0x21...0x39).contains(self) || (0x3B...0x40).contains(self) || (0x5B...0x5E).contains(self) || self == 0x60
                || (0x7B...0x7F).contains(self)
        }
    }
#endif
