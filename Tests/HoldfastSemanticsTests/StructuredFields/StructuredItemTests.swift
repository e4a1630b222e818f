// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct StructuredItemTests {
    static let valid: [(String, StructuredBareItem)] = [
        ("0", .integer(0)), ("-0", .integer(0)), ("  42  ", .integer(42)), ("-17", .integer(-17)), ("007", .integer(7)),
        ("999999999999999", .integer(999_999_999_999_999)), ("-999999999999999", .integer(-999_999_999_999_999)),
        ("1.5", .decimal(StructuredDecimal(thousandths: 1500))), ("0.001", .decimal(StructuredDecimal(thousandths: 1))),
        ("-00.25", .decimal(StructuredDecimal(thousandths: -250))),
        ("999999999999.999", .decimal(StructuredDecimal(thousandths: 999_999_999_999_999))),
        (#""""#, .string("")), (#""a b, c;d""#, .string("a b, c;d")), (#""q\"b\\""#, .string(#"q"b\"#)),
        ("a", .token("a")), ("*", .token("*")), ("A:b/c*!", .token("A:b/c*!")),
        ("::", .byteSequence([])), (":aGk=:", .byteSequence([0x68, 0x69])), (":aGk:", .byteSequence([0x68, 0x69])),
        (":aGl=:", .byteSequence([0x68, 0x69])), (":+/+/:", .byteSequence([0xFB, 0xFF, 0xBF])),
        (":AA==:", .byteSequence([0])),
        ("?1", .boolean(true)), ("?0", .boolean(false)), ("@0", .date(0)), ("@-62135596800", .date(-62_135_596_800)),
        (#"%"plain""#, .displayString("plain")), (#"%"f%c3%bc""#, .displayString("fü")),
        (#"%"%25%22%00\""#, .displayString("%\"\0\\")), (#"%"%f0%9f%90%98""#, .displayString("🐘")),
    ]

    @Test("RFC 9651 §4.2.3.1: every bare item", arguments: valid)
    func bareItems(text: String, expected: StructuredBareItem) throws {
        let item = try StructuredItem(parsing: text)
        #expect(item == StructuredItem(expected))
        #expect(try StructuredItem(parsing: item.serialized()) == item)
    }

    @Test(
        "RFC 9651 §4.2.4: malformed numbers and numbers out of range fail",
        arguments: [
            "-", "--1", "-a", "+1", "1000000000000000", "-1000000000000000", "1.", ".5", "1.1234", "1000000000000.0",
            "1.2.3", "1e5", "1_0", "0x1", "1 2", "1,2",
        ]
    )
    func badNumbers(text: String) {
        #expect(throws: StructuredFieldError.self) { try StructuredItem(parsing: text) }
    }

    @Test(
        "RFC 9651 §4.2: one error fails the whole field",
        arguments: [
            ("", StructuredFieldError.Code.item), ("   ", .item), ("\t1", .item), ("1\t", .separator),
            ("1 x", .separator),
            ("&", .item), ("(1)", .item), ("é", .item), ("'a'", .item),
            (#""open"#, .string), (#""a\n""#, .string), (#""a\"#, .string), ("\"a\tb\"", .string), ("\"é\"", .string),
            ("\"\u{7F}\"", .string), ("a\"", .separator), ("a,", .separator),
            (":", .byteSequence), (":aGk=", .byteSequence), (":a:", .byteSequence), (":a=:", .byteSequence),
            (":aGk==:", .byteSequence), (":aG=k:", .byteSequence), (":a b=:", .byteSequence), (":====:", .byteSequence),
            (":aGkx=:", .byteSequence), (":_-==:", .byteSequence),
            ("?", .boolean), ("?2", .boolean), ("?true", .boolean), ("?10", .separator),
            ("@", .number), ("@1.5", .date), ("@a", .number), ("@9999999999999999", .number),
            ("%", .displayString), ("%a", .displayString), (#"%"a"#, .displayString), (#"%"%C3%BC""#, .displayString),
            (#"%"%c3""#, .displayString), (#"%"%c0%80""#, .displayString), (#"%"%ed%a0%80""#, .displayString),
            (#"%"%4""#, .displayString), (#"%"%"#, .displayString), ("%\"ü\"", .displayString),
            ("%\"\t\"", .displayString),
            ("a;", .key), ("a;B", .key), ("a;1", .key), ("a; ;b", .key), ("a;b=", .item), ("a;b=;c", .item),
            ("a;b=(1)", .item), ("a ;b", .separator), ("a;b =1", .separator), ("a;b= 1", .item), ("a;\tb", .key),
        ]
    )
    func faults(text: String, code: StructuredFieldError.Code) {
        let error = #expect(throws: StructuredFieldError.self) { try StructuredItem(parsing: text) }
        #expect(error?.code == code)
        #expect(error?.position != nil)
    }

    @Test("RFC 9651 §4.2.3.2: parameters keep their order, and the last of equal keys gives the value")
    func parameters() throws {
        let item = try StructuredItem(parsing: #"x;a=1;  b;*c="s";a=?0;d-e_f.g=2.50"#)
        #expect(item.parameters.keys == ["a", "b", "*c", "d-e_f.g"])
        #expect(item.parameters["a"] == .boolean(false))
        #expect(item.parameters["b"] == .boolean(true))
        #expect(item.parameters["nothing"] == nil)
        #expect(try item.serialized() == #"x;a=?0;b;*c="s";d-e_f.g=2.5"#)
    }

    @Test(
        "RFC 9651 §4.1: one way to write each value",
        arguments: [
            (StructuredBareItem.integer(-0), "0"), (.decimal(StructuredDecimal(thousandths: 2000)), "2.0"),
            (.decimal(StructuredDecimal(thousandths: -5)), "-0.005"),
            (.decimal(StructuredDecimal(thousandths: 1050)), "1.05"),
            (.decimal(StructuredDecimal(thousandths: 1120)), "1.12"), (.string(#"a"\"#), #""a\"\\""#),
            (.byteSequence([1, 2, 3, 4]), ":AQIDBA==:"), (.byteSequence([1, 2, 3, 4, 5]), ":AQIDBAU=:"),
            (.date(-1), "@-1"), (.boolean(true), "?1"), (.displayString("a\"%\u{7F}ü"), #"%"a%22%25%7f%c3%bc""#),
        ]
    )
    func writing(value: StructuredBareItem, text: String) throws {
        #expect(try StructuredItem(value).serialized() == text)
    }

    @Test(
        "RFC 9651 §4.1: a value that could not be read back is not written",
        arguments: [
            StructuredBareItem.integer(1_000_000_000_000_000), .integer(.min), .date(.max),
            .decimal(StructuredDecimal(thousandths: .min)),
            .decimal(StructuredDecimal(thousandths: 1_000_000_000_000_000)), .string("é"), .string("a\r\nb"),
            .string("\u{7F}"), .token(""), .token("1a"), .token("a b"), .token("é"), .token("a\r\n"),
        ]
    )
    func unwritable(value: StructuredBareItem) {
        #expect(throws: StructuredFieldError.self) { try StructuredItem(value).serialized() }
        #expect(throws: StructuredFieldError.self) {
            try StructuredItem(.token("a"), parameters: ["p": value]).serialized()
        }
    }

    @Test("RFC 9651 §4.1.1.3: keys are checked", arguments: ["", "A", "1", "-a", "a b", "é", "a=", "aB"])
    func unwritableKeys(key: String) {
        #expect(throws: StructuredFieldError.self) {
            try StructuredItem(.token("a"), parameters: [key: .integer(1)]).serialized()
        }
    }

    @Test(
        "RFC 9651 §4.1.5: decimals round to three digits, halves to even",
        arguments: [
            (0.0005, Int64(0)), (0.0015, 2), (0.0025, 2), (-0.0015, -2), (1.0004, 1000), (0.0625, 62), (0.1875, 188),
            (0, 0), (999_999_999_999.75, 999_999_999_999_750), (1e12, nil), (1e300, nil), (.infinity, nil), (.nan, nil),
            (-1e12, nil),
        ] as [(Double, Int64?)]
    )
    func rounding(number: Double, thousandths: Int64?) {
        #expect(StructuredDecimal(rounding: number)?.thousandths == thousandths)
    }

    @Test func decimalsCompare() {
        let small = StructuredDecimal(thousandths: -1)
        #expect(small < StructuredDecimal(thousandths: 0) && small.doubleValue == -0.001)
    }
}
