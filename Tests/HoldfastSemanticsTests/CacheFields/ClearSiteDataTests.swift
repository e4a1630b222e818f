// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct ClearSiteDataTests {
    @Test(
        "Clear Site Data §3.1: quoted types, the rest ignored",
        arguments: [
            (#""cache""#, ["cache"], true), (#""cookies", "cache""#, ["cookies", "cache"], true),
            (#""*""#, ["*"], true),
            (#""unknown" , "cache""#, ["unknown", "cache"], true), (#""storage""#, ["storage"], false),
            ("cache", [], false),
            ("*", [], false), (#""Cache""#, ["Cache"], false), (#""cache" x, "storage""#, ["storage"], false),
            (#""cookies, cache""#, ["cookies, cache"], false), (#""cache"#, [], false),
            (#"cookies, "cache""#, ["cache"], true),
            ("", [], false), (",,", [], false), (#"x="cache""#, [], false),
        ]
    )
    func types(value: String, types: [String], clears: Bool) throws {
        let field = ClearSiteData(["Clear-Site-Data": value] as HeaderFields)
        #expect(field.types == types)
        #expect(field.clearsCache(of: try target()) == clears)
    }

    @Test("Clear Site Data §4.1: an insecure origin clears nothing")
    func origins() throws {
        let field = ClearSiteData(["Clear-Site-Data": #""storage""#, "clear-site-data": #""*""#] as HeaderFields)
        #expect(field.clearsCache(of: try target("https://example.com/")))
        #expect(!field.clearsCache(of: try target("http://example.com/")))
        #expect(!ClearSiteData([:] as HeaderFields).clearsCache(of: try target()))
    }
}
