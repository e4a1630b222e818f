// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastServices
import Testing

@Suite("HttpHeader", .timeLimit(.minutes(20)))
struct HttpHeaderTests {
    @Test("S23: the right side's lines replace the left side's, letter case aside, and no value ends a line")
    func merging() {
        let left: HttpHeader = ["authorization": "s", "Accept": "a", "Accept": "b", "X": "1"]
        let right: HttpHeader = ["Authorization": "r", "accept": "c", "Y": "2\r\nZ: 3"]
        let sum = left + right
        #expect(sum.values(of: .authorization) == ["r"])
        #expect(sum.values(of: .accept) == ["c"])
        #expect(sum["X"] == "1")
        #expect(sum["Y"]?.contains("\n") == false)
        #expect(left + HttpHeader() == left)
    }

    @Test("Methods have names")
    func methods() {
        #expect(HttpMethod.patch.rawValue == "PATCH")
        #expect(HttpMethod(rawValue: "PURGE").rawValue == "PURGE")
    }
}
