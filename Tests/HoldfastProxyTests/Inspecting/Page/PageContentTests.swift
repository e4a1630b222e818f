// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("The inspector's page")
    struct PageContentTests {
        private static let page = InspectorPage(word: "0123")
        private static let text = String(decoding: page.bytes, as: UTF8.self)

        private static func content(of element: String) throws -> String {
            let start = try #require(text.range(of: "<\(element)>"))
            let end = try #require(text.range(of: "</\(element)>"))
            return String(text[start.upperBound..<end.lowerBound])
        }

        @Test("The policy allows exactly this script and this style (CSP Level 3)", arguments: ["script", "style"])
        func hashes(element: String) throws {
            let digest = SHA256Digest(hashing: Array(try Self.content(of: element).utf8))
            let source = "\(element)-src 'sha256-\(Data(digest.bytes).base64EncodedString())'"
            #expect(Self.page.policy.contains(source))
            #expect(Self.text.components(separatedBy: "<\(element)").count == 2)
        }

        @Test("It loads nothing from elsewhere and has no event handlers in its markup")
        func selfContained() {
            let body = InspectorPage.body
            for forbidden in [" on", "style=", "javascript:", "src=", "href=\"h", "<iframe", "<link"] {
                #expect(!body.contains(forbidden), "\(forbidden)")
            }
            #expect(
                !Self.text.replacing("http://www.w3.org/2000/svg", with: "").replacing("http://example.com", with: "")
                    .contains("http")
            )
        }

        @Test(
            "The script never turns text into markup or code",
            arguments: [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc",
                "setHTML",
            ]
        )
        func textOnly(word: String) {
            #expect(!InspectorPage.script.contains(word))
        }

        @Test("Every field and button has a name, and every element that the script looks up exists")
        func names() throws {
            let script = InspectorPage.script
            for found in script.matches(of: /byId\("([a-z-]+)"\)/) {
                #expect(InspectorPage.body.contains("id=\"\(found.output.1)\""), "\(found.output.1)")
            }
            for found in InspectorPage.body.matches(of: /aria-labelledby="([a-z-]+)"/) {
                #expect(InspectorPage.body.contains("id=\"\(found.output.1)\""), "\(found.output.1)")
            }
        }
    }
#endif
