// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct CacheControlTests {
    @Test(
        "RFC 9111 §4.2.1: max-age is read conservatively",
        arguments: [
            ("max-age=60", Int64(60)), ("MAX-AGE=60", 60), (#"max-age="60""#, 60), ("max-age=060", 60), ("", nil),
            ("max-age=60, max-age=5", 5), ("max-age=5, max-age=60", 5), ("max-age=60, max-age=x", 0), ("max-age", 0),
            ("max-age=", 0), ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age=60x", 0), (#"max-age="6"0"#, 0),
            ("max-age=2147483648", 2_147_483_648), ("max-age=99999999999999999999", 2_147_483_648),
            ("a, ,;;, max-age=7", 7), (#"extension="max-age=3600", max-age=1"#, 1), ("x-max-age=5", nil),
            ("max-age=7;max-age=8", 0), (#"x="open, max-age=9"#, 9), ("max-age =60", 0), ("max-age= 60", 0),
            ("max-age 60", 0), ("max-age='60'", 0), ("max-age=+60", 0), ("max-age=0x10", 0), ("max-age=6 0", 0),
            ("max-age=\t60", 0), (#"max-age="60"#, 0), (#"max-age="6\0""#, 60), ("max-age=2147483647", 2_147_483_647),
            ("max-age=9223372036854775808", 2_147_483_648), ("max-age=60 ,x", 60), ("max-age=٦٠", 0),
            (#"max-age="""#, 0),
        ] as [(String, Int64?)]
    )
    func maxAge(value: String, expected: Int64?) {
        #expect(CacheControl(parsing: value).maxAge == expected)
    }

    @Test("RFC 9111 §5.2: flags are read in any letter case, and junk after them is ignored")
    func flags() {
        let field = CacheControl(
            parsing: "No-Store x, PUBLIC, must-revalidate, proxy-revalidate, must-understand, immutable, no-transform"
        )
        #expect(field.noStore && field.public && field.mustRevalidate && field.proxyRevalidate)
        #expect(field.mustUnderstand && field.immutable && field.noTransform && !field.onlyIfCached)
        #expect(field.contains("NO-STORE") && !field.contains("private"))
        #expect(CacheControl(parsing: "only-if-cached").onlyIfCached)
    }

    @Test(
        "RFC 9111 §5.2.2.4: qualified and unqualified forms",
        arguments: [
            ("", CacheControl.FieldNameForm.absent), ("no-cache", .unqualified), ("no-cache=a", .fields(["a"])),
            (#"no-cache="a, B""#, .fields(["a", "b"])), (#"no-cache="a", no-cache"#, .unqualified),
            (#"no-cache="""#, .unqualified), (#"no-cache="a b""#, .unqualified),
            (#"no-cache="a", no-cache="b""#, .fields(["a", "b"])), (#"no-cache="a, *""#, .unqualified),
            (#"no-cache="a"#, .unqualified), (#"no-cache="a"b"#, .unqualified), ("no-cache x", .unqualified),
            (#"no-cache ="a""#, .unqualified), (#"no-cache="a,,b,""#, .fields(["a", "b"])),
            (#"no-cache="a, Vary""#, .unqualified), ("no-cache=cache-control", .unqualified),
        ]
    )
    func fieldNames(value: String, expected: CacheControl.FieldNameForm) {
        #expect(CacheControl(parsing: value).noCache == expected)
        let asPrivate = value.split(separator: "no-cache", omittingEmptySubsequences: false).joined(
            separator: "private"
        )
        #expect(CacheControl(parsing: asPrivate).private == expected)
    }

    @Test(
        "RFC 9111 §5.2.1.2: max-stale",
        arguments: [
            ("", CacheControl.StaleTolerance.absent), ("max-stale", .any), ("max-stale=5", .seconds(5)),
            ("max-stale=x", .absent), ("max-stale x", .absent), ("max-stale 5", .absent), ("max-stale=", .absent),
            ("max-stale=-1", .absent), ("max-stale=5, max-stale=x", .absent), ("MAX-STALE", .any),
            ("max-stale=99999999999999999999", .seconds(2_147_483_648)), ("max-stale, max-stale=5", .seconds(5)),
            ("max-stale=5, max-stale=3", .seconds(3)),
            ("max-stale=5, max-stale", .seconds(5)),
        ]
    )
    func maxStale(value: String, expected: CacheControl.StaleTolerance) {
        #expect(CacheControl(parsing: value).maxStale == expected)
    }

    @Test("RFC 5861 and the rest of the seconds")
    func otherSeconds() {
        let field = CacheControl(parsing: "stale-while-revalidate=30, stale-if-error=60, min-fresh=7, s-maxage=9")
        #expect(field.staleWhileRevalidate == 30 && field.staleIfError == 60)
        #expect(field.minFresh == 7 && field.sMaxAge == 9)
        #expect(CacheControl(parsing: "stale-if-error=60, stale-if-error=x").staleIfError == nil)
        #expect(CacheControl(parsing: "s-maxage=x").sMaxAge == 0)
        #expect(CacheControl(parsing: "min-fresh=3, min-fresh=x, min-fresh=9").minFresh == 9)
    }

    @Test(
        "RFC 9111 §4.2.1: a malformed flag still restricts and grants nothing",
        arguments: ["%", "% x", "% =1", "%=", "%=1", #"%="x""#, "%;a", "%, %=1", "x, %=y, %"]
    )
    func malformedFlags(pattern: String) {
        func field(_ name: String) -> CacheControl {
            CacheControl(
                parsing: pattern.split(separator: "%", omittingEmptySubsequences: false).joined(separator: name)
            )
        }
        #expect(field("no-store").noStore && field("NO-STORE").noStore && field("must-revalidate").mustRevalidate)
        #expect(field("proxy-revalidate").proxyRevalidate && field("no-transform").noTransform)
        #expect(field("only-if-cached").onlyIfCached)
        let isWellFormed = pattern == "%"
        #expect(field("public").public == isWellFormed && field("immutable").immutable == isWellFormed)
        #expect(field("must-understand").mustUnderstand == isWellFormed)
    }

    @Test(
        "RFC 9111 §5.2: directive names are tokens, and anything else is skipped",
        arguments: [#""no-store""#, "(no-store)", "=no-store", "@no-store", "x=no-store", #"x="a, no-store, b""#]
    )
    func notThisName(value: String) {
        let field = CacheControl(parsing: value + ", max-age=5")
        #expect(!field.noStore && field.maxAge == 5)
    }

    @Test("RFC 9111 §5.4: Pragma counts only in requests without Cache-Control")
    func pragma() {
        #expect(CacheControl(request: ["Pragma": "x, No-Cache"]).noCache == .unqualified)
        #expect(CacheControl(request: ["Pragma": "no-cache", "Cache-Control": "max-age=1"]).noCache == .absent)
        #expect(CacheControl(["Pragma": "no-cache"] as HeaderFields).noCache == .absent)
    }

    @Test func linesAreReadOneByOne() {
        let field = CacheControl(["Cache-Control": #"a="open"#, "cache-control": "no-store"] as HeaderFields)
        #expect(field.noStore)
    }

    @Test("Writing quotes what must be quoted")
    func writing() {
        var field = CacheControl(parsing: "max-age=5, a, max-age=6")
        field.set("Max-Age", to: "7")
        field.set("ext", to: #"a "b" \"#)
        field.set("no-cache", to: "set-cookie")
        field.set("no store", to: nil)
        field.set("max-stale")
        #expect(field.description == #"max-age=7, a, ext="a \"b\" \\", no-cache="set-cookie", max-stale"#)
        #expect(CacheControl(parsing: field.description) == field)
        field.remove("EXT")
        #expect(field.directives.count == 4)
    }

    @Test(
        "An argument that cannot be written changes nothing",
        arguments: ["5\r\nSet-Cookie: a=b", "5\n", "\r", "a\0b", "\u{1B}[0m", "\u{7F}"]
    )
    func unwritable(argument: String) {
        var field = CacheControl(parsing: "max-age=5")
        field.set("max-age", to: argument)
        field.set("ext", to: argument)
        #expect(field.description == "max-age=5")
        field.set("ext", to: "a\té")
        #expect(field.description == "max-age=5, ext=\"a\té\"")
    }
}
