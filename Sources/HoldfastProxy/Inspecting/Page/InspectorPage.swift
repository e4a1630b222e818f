// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// The inspector's page: one document with its style and its script in it, which asks for nothing elsewhere.
    struct InspectorPage: Sendable {
        /// The document as it is sent.
        let bytes: ByteChunk
        /// What the document may do (CSP Level 3): run this script and no other, look like this, and ask the inspector itself.
        let policy: String

        /// The page that bears the word by which its orders are known.
        ///
        /// - Parameter word: hexadecimal digits.
        init(word: String) {
            let script = InspectorPage.script
            bytes = ByteChunk(copying: InspectorPage.document(word: word, script: script).utf8)
            policy = [
                "default-src 'none'",
                "script-src '\(InspectorPage.hash(of: script))'",
                "style-src '\(InspectorPage.hash(of: InspectorPage.style))'",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types 'none'",
            ]
            .joined(separator: "; ")
        }

        /// The whole script; its parts share one scope, which nothing outside of them sees.
        static var script: String {
            let parts = [basics, charts, summary, entries, calls, start].joined(separator: "\n\n")
            return "\"use strict\";\n(() => {\n\(parts)\n})();\n"
        }

        private static func document(word: String, script: String) -> String {
            """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta name="holdfast-word" content="\(word)">
            <title>Holdfast inspector</title>
            <link rel="icon" href="data:,">
            <style>\(style)</style>
            </head>
            <body>
            \(body)
            <script>\(script)</script>
            </body>
            </html>

            """
        }

        /// The source expression that allows a text as script or style, by its digest.
        private static func hash(of text: String) -> String {
            "sha256-\(Data(SHA256Digest(hashing: Array(text.utf8)).bytes).base64EncodedString())"
        }
    }
#endif
