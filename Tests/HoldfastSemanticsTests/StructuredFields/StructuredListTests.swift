// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite(.timeLimit(.minutes(20))) struct StructuredListTests {
    @Test(
        "RFC 9651 §4.2.1: lists, written back in one form",
        arguments: [
            ("a,b", "a, b"), ("  a \t,\t b  ", "a, b"), ("1,2;x;y=?1, \"s\"", "1, 2;x;y, \"s\""), ("a, a", "a, a"),
            ("()", "()"), ("( )", "()"), ("(a  b c)", "(a b c)"), ("(a;p 1.0;q=2);r , ()", "(a;p 1.0;q=2);r, ()"),
        ]
    )
    func lists(text: String, written: String) throws {
        let list = try StructuredList(parsing: text)
        #expect(try list.serialized() == written)
        #expect(try StructuredList(parsing: written) == list)
    }

    @Test("RFC 9651 §4.1: an empty container has no field value", arguments: ["", "   "])
    func empty(text: String) throws {
        #expect(try StructuredList(parsing: text) == StructuredList())
        #expect(try StructuredList().serialized() == nil)
        #expect(try StructuredDictionary(parsing: text) == [:])
        #expect(try StructuredDictionary().serialized() == nil)
    }

    @Test(
        "RFC 9651 §4.2.1: one error fails the whole list",
        arguments: [
            (",", StructuredFieldError.Code.item), ("a,", .separator), ("a, \t", .separator), ("a,,b", .item),
            ("a b", .separator), ("\ta", .item), ("(", .innerList), ("(a", .innerList), ("(a b", .innerList),
            ("(a,b)", .innerList), ("(a\tb)", .innerList), ("(a(b))", .innerList), ("((a))", .item),
            ("(a)b", .separator),
            ("(a\"b\")", .innerList), ("a=1", .separator), ("(\ta)", .item), ("a)", .separator), ("a, &", .item),
        ]
    )
    func faults(text: String, code: StructuredFieldError.Code) {
        let error = #expect(throws: StructuredFieldError.self) { try StructuredList(parsing: text) }
        #expect(error?.code == code)
    }

    @Test("RFC 9651 §4.2: the lines of a field form one list, and an empty line among them is an error")
    func lines() throws {
        let fields: HeaderFields = ["Example": "a, b", "example": "c"]
        let list = try StructuredList(parsing: fields["Example"] ?? "")
        #expect(list.members == [.bare(.token("a")), .bare(.token("b")), .bare(.token("c"))])
        let holed: HeaderFields = ["Example": "a", "example": ""]
        #expect(throws: StructuredFieldError.self) { try StructuredList(parsing: holed["Example"] ?? "") }
    }

    @Test(
        "RFC 9651 §4.2.2: dictionaries, written back in one form",
        arguments: [
            ("a=1,b=2", "a=1, b=2"), ("a, b;x=1 , *c=?1;y", "a, b;x=1, *c;y"), ("a=?0", "a=?0"),
            ("a=(1 2);p,b=()", "a=(1 2);p, b=()"), ("a=1, b=2, a=3", "a=3, b=2"), ("a=1, a", "a"),
            ("a;x, b, a=(z)", "a=(z), b"), ("a-._*9=x", "a-._*9=x"),
        ]
    )
    func dictionaries(text: String, written: String) throws {
        let dictionary = try StructuredDictionary(parsing: text)
        #expect(try dictionary.serialized() == written)
        #expect(try StructuredDictionary(parsing: written) == dictionary)
    }

    @Test(
        "RFC 9651 §4.2.2: one error fails the whole dictionary",
        arguments: [
            ("=1", StructuredFieldError.Code.key), ("A=1", .key), ("1=a", .key), ("\"a\"=1", .key), ("a=", .item),
            ("a =1", .separator), ("a= 1", .item), ("a=1,", .separator), ("a=1 b=2", .separator), ("a=1,,b=2", .key),
            ("a=1;", .key), ("a,&", .key), ("a==1", .item), ("é=1", .key),
        ]
    )
    func dictionaryFaults(text: String, code: StructuredFieldError.Code) {
        let error = #expect(throws: StructuredFieldError.self) { try StructuredDictionary(parsing: text) }
        #expect(error?.code == code)
        #expect(error?.description.contains(code.rawValue) == true)
    }

    @Test("RFC 9651 §3: sizes above the required minimum are supported")
    func sizes() throws {
        let list = (0..<3000).map { "t\($0)" }.joined(separator: ",")
        #expect(try StructuredList(parsing: list).members.count == 3000)
        let pairs = (0..<3000).map { "k\($0)=\($0)" }.joined(separator: ",")
        let dictionary = try StructuredDictionary(parsing: pairs + "," + pairs)
        #expect(dictionary.count == 3000 && dictionary["k2999"] == .bare(.integer(2999)))
        let parameters = (0..<3000).map { ";k\($0)" }.joined()
        #expect(try StructuredItem(parsing: "a" + parameters).parameters.count == 3000)
        let items = "(" + String(repeating: "1 ", count: 3000) + ")"
        guard case .innerList(let inner) = try StructuredList(parsing: items).members.first else {
            Issue.record("no inner list")
            return
        }
        #expect(inner.items.count == 3000)
        let key = String(repeating: "k", count: 5000)
        #expect(try StructuredDictionary(parsing: key).keys == [key])
        let text = String(repeating: "s", count: 100_000)
        #expect(try StructuredItem(parsing: "\"\(text)\"").value == .string(text))
    }

    @Test(
        "A long hostile value is read in one pass",
        arguments: ["(", "a,", "a;b", ";", "k=(", "%", "\"", ":", "1", "a,b"]
    )
    func hostileValues(piece: String) {
        let value = String(repeating: piece, count: 200_000 / piece.utf8.count)
        _ = try? StructuredList(parsing: value)
        _ = try? StructuredItem(parsing: value)
        _ = try? StructuredDictionary(parsing: value)
        _ = try? StructuredItem(parsing: "a;" + value)
        _ = try? StructuredItem(parsing: "\"" + value)
    }
}
