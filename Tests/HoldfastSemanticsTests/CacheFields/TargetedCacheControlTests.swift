// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct TargetedCacheControlTests {
    private func read(_ value: String) -> CacheControl? {
        TargetedCacheControl(["CDN-Cache-Control": value], targets: [.cdnCacheControl])?.cacheControl
    }

    @Test(
        "RFC 9213 §2.1: seconds are Integers, other types are ignored",
        arguments: [
            ("max-age=60", Int64(60)), ("max-age=0", 0), ("max-age=-5", 0), ("max-age=999999999999999", 2_147_483_648),
            ("max-age=60;p=1", 60), ("max-age=60, max-age=5", 5), ("max-age=5, max-age=60", 60),
            (#"max-age="60""#, nil),
            ("max-age=1.5", nil), ("max-age", nil), ("max-age=soon", nil), ("max-age=(60)", nil), ("max-age=@60", nil),
            ("unknown, max-age=7", 7), ("max-age=60, max-age", nil),
        ] as [(String, Int64?)]
    )
    func seconds(value: String, expected: Int64?) {
        #expect(read(value)?.maxAge == expected)
        let others = ["s-maxage", "stale-while-revalidate", "stale-if-error"].map { name in
            read(value.split(separator: "max-age", omittingEmptySubsequences: false).joined(separator: name))
        }
        #expect(others[0]?.sMaxAge == expected)
        // An allowance that is negative allows nothing, which nil says.
        let allowance = value.contains("-5") ? nil : expected
        #expect(others[1]?.staleWhileRevalidate == allowance && others[2]?.staleIfError == allowance)
    }

    @Test(
        "RFC 9213 §2.1: a flag without a value is true",
        arguments: [
            ("no-store", true), ("no-store=?1", true), ("no-store;a=1", true), ("no-store=?0", false),
            ("no-store=1", false), (#"no-store="x""#, false), ("no-store=(a)", false), ("no-store=?0, no-store", true),
            ("no-store, no-store=?0", false),
        ]
    )
    func flags(value: String, expected: Bool) {
        let field = read(value)
        #expect(field?.noStore == expected)
    }

    @Test(
        "RFC 9111 §5.2, RFC 9213 §2.1: directive names ignore letter case, strings keep theirs",
        arguments: [
            ("Max-Age=60", ["max-age", "60"]), ("MAX-AGE=60;P=1", ["max-age", "60"]),
            (#"X="A \"B\" C""#, ["x", #"A "B" C"#]), (#"X="\\A", NO-STORE"#, ["x", #"\A"#, "no-store"]),
        ]
    )
    func letterCase(value: String, expected: [String]) {
        let directives = read(value)?.directives ?? []
        #expect(directives.flatMap { [$0.name] + ($0.argument.map { [$0] } ?? []) } == expected)
    }

    @Test("RFC 9213 §2.1: every flag of a response is known")
    func everyFlag() {
        let field = read("public, must-revalidate, proxy-revalidate, must-understand, immutable, no-transform")
        #expect(field?.public == true && field?.mustRevalidate == true && field?.proxyRevalidate == true)
        #expect(field?.mustUnderstand == true && field?.immutable == true && field?.noTransform == true)
        let wrong = read("public=1, must-revalidate=a, immutable=?0, no-transform=2, must-understand=2.5")
        #expect(wrong?.directives == [])
    }

    @Test(
        "RFC 9213 §2.1: lists of field names are given as text",
        arguments: [
            ("no-cache", CacheControl.FieldNameForm.unqualified), (#"no-cache="a, B""#, .fields(["a", "b"])),
            ("no-cache=a", .fields(["a"])), (#"no-cache="a b""#, .unqualified), (#"no-cache="""#, .unqualified),
            ("no-cache=?0", .absent), ("no-cache=1", .absent), ("no-cache=(a b)", .absent), ("a", .absent),
        ]
    )
    func fieldNames(value: String, expected: CacheControl.FieldNameForm) {
        #expect(read(value)?.noCache == expected)
        let asPrivate = value.split(separator: "no-cache", omittingEmptySubsequences: false).joined(
            separator: "private"
        )
        #expect(read(asPrivate)?.private == expected)
    }

    @Test("Unknown directives are kept if Cache-Control could express them")
    func extensions() {
        let field = read(#"a, b=1, c=tok, d="q r", e=1.5, f=:aGk=:, g=(x), h=?0"#)
        #expect(field?.description == #"a, b=1, c=tok, d="q r""#)
    }

    @Test(
        "RFC 9213 §2.2: an invalid or empty field counts as absent",
        arguments: [
            "", "max-age=10000, &&&&&", "max-age= 100", "max-age=60,", "no-store;", "max-age=60 no-store",
            "max-age=9999999999999999", "no-cache=\"open",
        ]
    )
    func invalid(value: String) {
        #expect(read(value) == nil)
        let fields: HeaderFields = ["Example-Cache-Control": value, "CDN-Cache-Control": "max-age=9"]
        let selected = TargetedCacheControl(fields, targets: ["Example-Cache-Control", .cdnCacheControl])
        #expect(selected?.field == .cdnCacheControl && selected?.cacheControl.maxAge == 9)
    }

    @Test("RFC 9213 §2.2: the first target in the list wins, whatever the order of the lines")
    func order() {
        let fields: HeaderFields = [
            "Cache-Control": "no-store", "CDN-Cache-Control": "max-age=1", "Example-Cache-Control": "max-age=2",
        ]
        let first = TargetedCacheControl(fields, targets: ["example-cache-control", .cdnCacheControl])
        #expect(first?.cacheControl.maxAge == 2 && first?.cacheControl.noStore == false)
        #expect(TargetedCacheControl(fields, targets: [.cdnCacheControl])?.cacheControl.maxAge == 1)
        #expect(TargetedCacheControl(fields, targets: []) == nil)
        #expect(TargetedCacheControl(fields, targets: ["Other-Cache-Control"]) == nil)
    }

    @Test("RFC 9213 §2.2: a valid field wins even if it says nothing; its lines form one Dictionary")
    func meaningless() {
        let fields: HeaderFields = ["CDN-Cache-Control": "foo=?0", "Cache-Control": "max-age=9"]
        #expect(TargetedCacheControl(fields, targets: [.cdnCacheControl])?.cacheControl.directives == [])
        let lines: HeaderFields = ["CDN-Cache-Control": "max-age=9, foo", "cdn-cache-control": "max-age=3"]
        #expect(TargetedCacheControl(lines, targets: [.cdnCacheControl])?.cacheControl.maxAge == 3)
    }
}
