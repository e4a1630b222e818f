// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct ValidationTests {
    @Test("RFC 9111 §4.3.1: conditional fields")
    func conditionalFields() throws {
        let first = try stored(["ETag": "\"a\"", "Last-Modified": date(-5)], decoded: true)
        let second = try stored(["ETag": "W/\"b\"", "Last-Modified": date(-7)])
        let third = try stored(["ETag": "\"a\""])
        let fields = Validation.conditionalFields(for: [first, second, third])
        #expect(fields == ["If-None-Match": "\"a\", W/\"b\"", "If-Modified-Since": date(-5)])
        #expect(Validation.conditionalFields(for: [third, second]) == ["If-None-Match": "\"a\", W/\"b\""])
        #expect(Validation.conditionalFields(for: [try stored(["A": "b"])]).isEmpty)
        #expect(Validation.conditionalFields(for: []).isEmpty)
    }

    @Test(
        "RFC 9111 §4.3.3, §4.3.4: which response a 304 selects",
        arguments: [
            (["ETag": "\"b\""], 1), (["ETag": "W/\"b\""], 1), (["ETag": "\"w\""], 2), (["ETag": "\"x\""], nil),
            ([:], nil), (["Last-Modified": date(-9)], 3), (["Last-Modified": date(-8)], nil),
            (["Last-Modified": "x"], nil),
        ] as [(HeaderFields, Int?)]
    )
    func selection(fields: HeaderFields, expected: Int?) throws {
        let candidates = [
            try stored(["ETag": "\"a\""]), try stored(["ETag": "\"b\""]), try stored(["ETag": "W/\"w\""]),
            try stored(["Last-Modified": date(-9)]),
        ]
        let head = ResponseHead(status: .notModified, fields: fields)
        #expect(Validation.selected(by: head, among: candidates) == expected)
    }

    @Test(
        "A 304 selects the only candidate",
        arguments: [
            (["ETag": "\"a\""], [:], 0), (["Last-Modified": date(-9)], [:], 0),
            (["Last-Modified": date(-9)], ["Last-Modified": date(-9)], 0),
            (["Last-Modified": date(-9)], ["Last-Modified": date(-8)], nil),
            (["ETag": "\"a\""], ["ETag": "\"b\""], nil),
        ] as [(HeaderFields, HeaderFields, Int?)]
    )
    func onlyCandidate(storedFields: HeaderFields, fields: HeaderFields, expected: Int?) throws {
        let head = ResponseHead(status: .notModified, fields: fields)
        #expect(Validation.selected(by: head, among: [try stored(storedFields)]) == expected)
        #expect(Validation.selected(by: head, among: []) == nil)
    }

    @Test("A strong match takes precedence over a weak one")
    func strongFirst() throws {
        let candidates = [try stored(["ETag": "W/\"a\""]), try stored(["ETag": "\"a\""])]
        let strong = ResponseHead(status: .notModified, fields: ["ETag": "\"a\""])
        #expect(Validation.selected(by: strong, among: candidates) == 1)
        let weak = ResponseHead(status: .notModified, fields: ["ETag": "W/\"a\""])
        #expect(Validation.selected(by: weak, among: candidates) == 0)
    }
}
