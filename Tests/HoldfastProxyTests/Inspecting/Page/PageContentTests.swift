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

        @Test("The policy allows this very script and this very style (CSP Level 3)", arguments: ["script", "style"])
        func hashes(element: String) throws {
            let digest = SHA256Digest(hashing: Array(try Self.content(of: element).utf8))
            let source = "\(element)-src 'sha256-\(Data(digest.bytes).base64EncodedString())'"
            #expect(Self.page.policy.contains(source))
            #expect(Self.text.components(separatedBy: "<\(element)").count == 2)
        }

        @Test("It asks for nothing elsewhere and has no handlers in its markup")
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
            "The script makes no markup and no code out of texts",
            arguments: [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc",
                "setHTML",
            ]
        )
        func textOnly(word: String) {
            #expect(!InspectorPage.script.contains(word))
        }

        @Test("Every field and button of a form has a name, and every one that the script looks up is there")
        func names() throws {
            let script = InspectorPage.script
            for found in script.matches(of: /byId\("([a-z-]+)"\)/) {
                #expect(InspectorPage.body.contains("id=\"\(found.output.1)\""), "\(found.output.1)")
            }
            for found in InspectorPage.body.matches(of: /aria-labelledby="([a-z-]+)"/) {
                #expect(InspectorPage.body.contains("id=\"\(found.output.1)\""), "\(found.output.1)")
            }
        }

        /// The colours of a scheme by name.
        private static func colours(dark: Bool) throws -> [String: [Double]] {
            let style = InspectorPage.style
            let mark = try #require(style.range(of: "@media (prefers-color-scheme: dark)"))
            let part = dark ? style[mark.upperBound...] : style[..<mark.lowerBound]
            var colours: [String: [Double]] = [:]
            for found in part.matches(of: /--([a-z-]+): #([0-9a-f]{6})/) where colours[String(found.output.1)] == nil {
                let number = try #require(Int(found.output.2, radix: 16))
                colours[String(found.output.1)] = [number >> 16, number >> 8 & 255, number & 255].map {
                    Double($0) / 255
                }
            }
            return colours
        }

        /// The contrast of two colours (WCAG 2.2).
        private static func contrast(_ left: [Double], _ right: [Double]) -> Double {
            let luminances = [left, right].map { colour in
                let linear = colour.map { $0 <= 0.04045 ? $0 / 12.92 : pow(($0 + 0.055) / 1.055, 2.4) }
                return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
            }
            .sorted()
            return (luminances[1] + 0.05) / (luminances[0] + 0.05)
        }

        @Test(
            "Texts stand out from their ground by 4.5 to 1, lines by 3 to 1, by day and by night",
            arguments: [false, true]
        )
        func contrasts(dark: Bool) throws {
            let colours = try Self.colours(dark: dark)
            let texts = [
                "text", "quiet", "accent", "danger", "hits", "stale", "revalidated", "collapsed", "misses", "bypasses",
            ]
            for ground in ["panel", "ground"] {
                for text in texts {
                    let contrast = Self.contrast(try #require(colours[text]), try #require(colours[ground]))
                    #expect(contrast >= 4.5, "\(text) on \(ground): \(contrast)")
                }
                #expect(Self.contrast(try #require(colours["edge"]), try #require(colours[ground])) >= 3)
            }
            #expect(Self.contrast(try #require(colours["on-danger"]), try #require(colours["danger"])) >= 4.5)
        }
    }
#endif
