// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import Testing

    @Suite("Field lines (RFC 9112 §5)")
    struct FieldLinesTests {
        private static func read(
            _ text: String,
            _ rules: FieldLines.Rules,
            limits: HeadLimits = HeadLimits()
        ) throws(MessageFault) -> [String] {
            let outcome = FieldText.bytes(text).withUnsafeBytes { bytes in
                Result { () throws(MessageFault) in try FieldLines.read(bytes, limits: limits, rules: rules) }
            }
            return try outcome.get().map { "\($0.name.rawName)=\($0.value)" }
        }

        @Test("Names keep their spelling, values their bytes, lines their order")
        func plain() throws {
            let lines = try Self.read("B: 1\r\na:\r\nb: \t x y \t\r\nC:ÿ\u{80}\r\n\r\nrest", .request)
            #expect(lines == ["B=1", "a=", "b=x y", "C=ÿ\u{80}"])
        }

        @Test(
            "Lines that a server refuses and a proxy repairs in responses",
            arguments: [
                ("A: 1\r\n 2\r\n\t3\r\n\r\n", ["A=1 2 3"]),
                ("A: 1\nB: 2\n\n", ["A=1", "B=2"]),
                ("A \t: 1\r\n\r\n", ["A=1"]),
                ("A: 1\u{1}2\r\n\r\n", ["A=1\u{1}2"]),
            ]
        )
        func tolerance(text: String, lines: [String]) throws {
            #expect(throws: MessageFault.self) { try Self.read(text, .request) }
            #expect(try Self.read(text, .response) == lines)
        }

        @Test(
            "Lines that are always refused",
            arguments: [
                "A\r\n\r\n", ": 1\r\n\r\n", "A B: 1\r\n\r\n", "A: 1\r2\r\n\r\n", "A: 1\u{0}\r\n\r\n", "Ä: 1\r\n\r\n",
                " A: 1\r\n\r\n",
                "A: 1", "A\r: 1\r\n\r\n", "\u{7F}: 1\r\n\r\n",
            ]
        )
        func malformed(text: String) {
            #expect(throws: MessageFault.self) { try Self.read(text, .request) }
            #expect(throws: MessageFault.self) { try Self.read(text, .response) }
        }

        @Test("Too many lines are refused with 431 (RFC 6585 §5)")
        func tooMany() throws {
            let three = "A: 1\r\nB: 2\r\nC: 3\r\n\r\n"
            #expect(try Self.read(three, .request, limits: HeadLimits(fieldLines: 3)).count == 3)
            let fault = #expect(throws: MessageFault.self) {
                try Self.read(three, .request, limits: HeadLimits(fieldLines: 2))
            }
            #expect(fault?.status == 431)
        }

        @Test("A byte counts as tchar exactly if RFC 9110 §5.6.2 says so")
        func tokens() {
            for byte in UInt8.min...UInt8.max {
                let accepted = (try? Self.read("\(Unicode.Scalar(byte)): 1\r\n\r\n", .request)) != nil
                #expect(accepted == (FieldName("\(Unicode.Scalar(byte))") != nil), "byte \(byte)")
            }
        }
    }
#endif
