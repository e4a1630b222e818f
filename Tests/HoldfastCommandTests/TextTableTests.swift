// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastCommand
import Testing

@Suite("Tables of text", .timeLimit(.minutes(20)))
struct TextTableTests {
    @Test("Columns stand two blanks apart, on their side; rows may be shorter than others, and no line ends in a blank")
    func columns() {
        var table = TextTable(["name", "count", "note"], alignments: [.left, .right])
        table.add(["a", "7"])
        table.add(["longer", "1234567", "x"])
        #expect(table.text() == "name      count  note\na             7\nlonger  1234567  x\n")
    }

    @Test("What does not fit is cut in the widest column, which keeps at least eight characters")
    func width() {
        var table = TextTable(["id", "address"])
        table.add(["12", "https://example.com/a/long/path"])
        let whole = "id  address\n12  https://example.com/a/long/path\n"
        #expect(table.text(width: 35) == whole)
        #expect(table.text(width: 34) == "id  address\n12  https://example.com/a/long/pa…\n")
        #expect(table.text(width: 5) == "id  address\n12  https:/…\n")
    }
}
