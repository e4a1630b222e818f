// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Testing

    @testable import HoldfastProxy

    @Suite("The colors of the inspector's page")
    struct PageColourTests {
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
            "Contrast is at least 4.5:1 for text and 3:1 for lines, in light and dark mode",
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
