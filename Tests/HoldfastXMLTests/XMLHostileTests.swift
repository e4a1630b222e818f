// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    import Foundation
    import HoldfastTesting
    import HoldfastXML
    import Testing

    @Suite("Hostile XML", .timeLimit(.minutes(20)))
    struct XMLHostileTests {
        private static let good = "<n><id>1</id><text>t</text><tags>a</tags></n>"

        @Test(
            "Well-formed documents are read, whatever else they contain",
            arguments: [
                good,
                "\u{FEFF}" + good,
                "<?xml version='1.0' encoding='utf-8' standalone=\"yes\"?>\n<!-- c -->\n" + good
                    + "\n<!-- d --><?pi x?>\n",
                "<n a='1' b=\"&lt;&#65;\"><id >1</id ><text>t</text\n><tags>a</tags><e/><f x='y' /></n>",
                "<n><id>1</id><text><![CDATA[t]]></text><tags>a</tags></n>",
                "<n><id>1</id><text>&#x74;</text><tags>a</tags></n>",
            ]
        )
        func reads(_ text: String) throws {
            #expect(try XMLBed.decoded(text) == XMLBed.Note(id: 1, text: "t", tags: ["a"]))
        }

        @Test(
            "XML 1.0 §2.11: line ends in text are LF, however they were sent; a reference stays what it is",
            arguments: [
                ("a\r\nb\rc\nd", "a\nb\nc\nd"), ("<![CDATA[a\r\r\nb]]>", "a\n\nb"),
                ("a&#13;\r\nb", "a\r\nb"),
            ]
        )
        func lineEnds(_ sent: String, _ text: String) throws {
            let note = try XMLBed.decoded("<n><id>1</id><text>\(sent)</text><tags>a</tags></n>")
            #expect(Array(note.text.utf8) == Array(text.utf8))
        }

        @Test("A document beyond what the system's parser reads is refused with the reason")
        func parserLimit() {
            let text = String(repeating: "x", count: 10_000_000)
            let error = #expect(throws: (any Error).self) {
                try XMLBed.decoded("<n><id>1</id><text>\(text)</text><tags>a</tags></n>")
            }
            #expect(error.map { "\($0)".contains("Foundation's parser reads less than") } == true)
        }

        @Test(
            "Malformed documents are an error",
            arguments: [
                "", " ", "text", "<", "<n", "<n>", "</n>", "<n></m>", "<n/><n/>", "<n>&foo;</n>", "<n>&</n>",
                "<n>&#0;</n>",
                "<n>&#xD800;</n>", "<n>&#99999999999;</n>", "<n a=1/>", "<n a='<'/>", "<n a='1' a='2'/>", "<1/>",
                "<n b/>", "<n>\u{0}</n>",
                "<!-- ", "<n><![CDATA[</n>", "<?xml", "<n/>text", "<n><id>1</id><text>t</text><tags>a</n>",
                "<n a=\"x/>", "{\"n\": 1}",
            ]
        )
        func malformed(_ text: String) {
            #expect(throws: (any Error).self) { try XMLBed.decoded(text) }
        }

        @Test(
            "What is obviously malformed is refused before a parser reads it, with the reason",
            arguments: [
                ("<n/>text", "text outside"), ("text<n/>", "text outside"), ("<n a='<'/>", "contains a <"),
                ("<n a='\u{1}'/>", "XML does not allow"), ("<n a='&foo;'/>", "reference"), ("< n/>", "name"),
                ("<n ='1'/>", "name"), ("<n>", "ends before"), ("<n/><m/>", "two outermost elements"),
            ]
        )
        func reasons(_ text: String, _ reason: String) {
            let error = #expect(throws: DecodingError.self) { try XMLBed.decoded(text) }
            let words = error.map { "\($0)" } ?? ""
            #expect(words.contains("The XML was rejected.") && words.contains(reason), "\(words)")
        }

        @Test(
            "A document type declaration is refused in any encoding, so nothing is expanded and no file is read"
        )
        func declarations() throws {
            let bomb =
                "<!DOCTYPE n [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><n><id>1</id><text>&b;</text><tags>a</tags></n>"
            let outside =
                "<!DOCTYPE n [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><n><id>1</id><text>&x;</text><tags>a</tags></n>"
            for text in [
                bomb, outside, "<!doctype n>" + Self.good, "<n><!ENTITY a 'b'></n>",
                "<!DOCTYPE n SYSTEM 'http://h/d'>" + Self.good,
            ] {
                for data in try [
                    Data(text.utf8), #require(text.data(using: .utf16)),
                    #require(("<?xml version='1.0'?>" + text).data(using: .utf16BigEndian)),
                ] {
                    let error = #expect(throws: DecodingError.self) { try XMLBed.decoded(data) }
                    #expect(error.map { "\($0)".contains("document type declaration") } == true)
                }
            }
            // In UTF-7 the declaration would look like text.
            let hidden = "<?xml version='1.0' encoding='UTF-7'?>+ADwAIQ-DOCTYPE n>" + Self.good
            for text in [hidden, "<?xml version='1.0' encoding='UTF-7'?>" + Self.good] {
                let error = #expect(throws: DecodingError.self) { try XMLBed.decoded(text) }
                #expect(error.map { "\($0)".contains("encoding utf-7 is not supported") } == true)
            }
        }

        @Test("Other encodings are decoded as declared, and unknown ones refused")
        func encodings() throws {
            let text = "<n><id>1</id><text>é€</text><tags>a</tags></n>"
            let expected = XMLBed.Note(id: 1, text: "é€", tags: ["a"])
            #expect(try XMLBed.decoded(#require(text.data(using: .utf16))) == expected)
            let windows = "<?xml version='1.0' encoding=\"Windows-1252\"?>" + text
            #expect(try XMLBed.decoded(#require(windows.data(using: .windowsCP1252))) == expected)
            let latin = "<?xml version='1.0' encoding='ISO-8859-1'?>" + text.replacing("€", with: "")
            #expect(try XMLBed.decoded(#require(latin.data(using: .isoLatin1))).text == "é")
            #expect(throws: DecodingError.self) { try XMLBed.decoded(#require(text.data(using: .utf32))) }
            #expect(throws: DecodingError.self) { try XMLBed.decoded(Data([0x3C, 0x6E, 0x3E, 0xFF, 0xFE])) }
        }

        @Test("Depth, size, elements and attributes are bounded")
        func bounded() throws {
            func nested(_ depth: Int) -> String {
                String(repeating: "<n>", count: depth) + String(repeating: "</n>", count: depth)
            }
            let deep = #expect(throws: DecodingError.self) { try XMLBed.decoded(nested(65)) }
            #expect(deep.map { "\($0)".contains("deeper than 64") } == true)
            #expect(throws: DecodingError.self) { try XMLBed.decoded(nested(100_000)) }
            // 64 are let through, and the parser and its reader bear them.
            let reachable = #expect(throws: DecodingError.self) { try XMLBed.decoded(nested(64)) }
            #expect(reachable.map { "\($0)".contains("deeper") } == false)

            var limits = XMLLimits()
            limits.nodes = 4
            limits.attributes = 2
            #expect(throws: Never.self) { try XMLBed.decoded(Self.good, limits: limits) }
            limits.nodes = 3
            #expect(throws: DecodingError.self) { try XMLBed.decoded(Self.good, limits: limits) }
            limits = XMLLimits()
            limits.attributes = 2
            let attributes = Self.good.replacing("<n>", with: "<n a='1' b='2' c='3'>")
            #expect(throws: DecodingError.self) { try XMLBed.decoded(attributes, limits: limits) }
            limits.attributes = 3
            #expect(throws: Never.self) { try XMLBed.decoded(attributes, limits: limits) }
            limits.bytes = Self.good.utf8.count - 1
            #expect(throws: DecodingError.self) { try XMLBed.decoded(Self.good, limits: limits) }
        }

        @Test(
            "A text of many references, sections, comments and letters is joined in linear time"
        )
        func wholeTexts() throws {
            func text(_ markup: String) throws -> String {
                try XMLBed.decoded("<n><id>1</id><text>\(markup)</text><tags>a</tags></n>").text
            }
            #expect(try text("a &lt; b &amp; &quot;c&quot; d") == "a < b & \"c\" d")
            #expect(try text("x <![CDATA[<y>]]><!-- - --> z<?p?> &#122;<![CDATA[]]]]><![CDATA[>]]>") == "x <y> z z]]>")
            #expect(try text("&amp; &amp;") == "& &")
            #expect(try text("") == "")
            #expect(try text(String(repeating: "&amp;", count: 100_000)).utf8.count == 100_000)
            #expect(try text(String(repeating: "漢", count: 100_000)).unicodeScalars.count == 100_000)
        }

        @Test(
            "Instructions and comments that a parser may not survive do not reach it",
            arguments: ["<?p?>", "<?p ?>", "<!---->", "<?xml?>"]
        )
        func instructions(_ markup: String) throws {
            #expect(try XMLBed.decoded(markup + Self.good + markup).id == 1)
            #expect(try XMLBed.decoded(Self.good.replacing("<id>", with: markup + "<id>")).id == 1)
        }

        @Test("Damage anywhere in a document gives a value or an error, never a trap")
        func fuzz() {
            let seed: UInt64 = 4_711
            var generator = SeededGenerator(seed: seed)
            let document = Array(
                "<?xml version='1.0'?><n a='1'><!--c--><id>1</id><text><![CDATA[t]]>&amp;</text><tags>a</tags><?p?></n>"
                    .utf8
            )
            let pieces = [
                "<", ">", "&", ";", "'", "\"", "/", "!", "?", "[", "]", "-", "\u{0}", "<!DOCTYPE", "]]>", "<n>", "</n>",
                "é", "encoding='x'",
            ]
            for _ in 0..<1_500 {
                var damaged = document
                for _ in 0..<Int.random(in: 1...3, using: &generator) {
                    let place = Int.random(in: 0..<damaged.count, using: &generator)
                    let piece = Array((pieces.randomElement(using: &generator) ?? "<").utf8)
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0: damaged[place] = UInt8.random(in: 0...255, using: &generator)
                    case 1: damaged.insert(contentsOf: piece, at: place)
                    case 2: damaged.removeSubrange(place..<min(place + 4, damaged.count))
                    default: damaged = Array(damaged.prefix(place + 1))
                    }
                    if damaged.isEmpty { damaged = [0x3C] }
                }
                _ = try? XMLBed.decoded(Data(damaged))
            }
        }

        @Test("A reference to a character has no sign", arguments: ["&#+116;", "&#x+74;"])
        func signedReferences(_ reference: String) {
            #expect(throws: DecodingError.self) {
                try XMLBed.decoded("<n><id>1</id><text>\(reference)</text><tags>a</tags></n>")
            }
        }
    }
#endif
