// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// One stored response with its body, as JSON can hold it.
    struct EntryContent: Sendable {
        /// What became of the body.
        enum Body: Sendable {
            case text(String)
            case base64(String)
            /// It is not there, and why.
            case leftOut(String)
        }

        let entry: ExportedEntry
        let body: Body

        /// Reads the body where it is wanted and not too long.
        init(_ entry: ExportedEntry, withBody: Bool, upTo limit: Int) async throws {
            self.entry = entry
            let length = entry.body.length ?? .max
            guard withBody else {
                body = .leftOut("left out")
                return
            }
            guard length <= limit else {
                body = .leftOut("left out: \(length) bytes are over the limit of \(limit)")
                return
            }
            do {
                let bytes = try await entry.body.collect(upTo: limit)
                body = Self.body(bytes, entry.head.fields)
            } catch {
                if error is CancellationError { throw error }
                body = .leftOut("left out: the stored bytes are damaged or gone")
            }
        }

        private static func body(_ bytes: ByteChunk, _ fields: HeaderFields) -> Body {
            let data = bytes.withUnsafeBytes { Data($0) }
            let isPlain = fields[.contentEncoding].map { $0.isEmpty || $0.lowercased() == "identity" } ?? true
            if isPlain, isText(fields[.contentType] ?? ""), let text = String(data: data, encoding: .utf8) {
                return .text(text)
            }
            return .base64(data.base64EncodedString())
        }

        private static func isText(_ type: String) -> Bool {
            let type = type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
            if type.hasPrefix("text/") || type.hasSuffix("+json") || type.hasSuffix("+xml") { return true }
            return [
                "application/json", "application/xml", "application/javascript", "application/x-www-form-urlencoded",
            ].contains(type)
        }

        /// For `show --json`.
        var json: [(String, JSONText)] {
            let words = FreshnessWords(entry)
            var members = entry.info.json
            members.append(
                (
                    "freshness",
                    .object([
                        ("lifetime", .int(Int(clamping: entry.lifetime.seconds))),
                        ("rule", .string(words.rule)),
                        ("section", words.section.map(JSONText.string) ?? .null),
                        ("why", .string(words.text)),
                    ])
                )
            )
            members.append(("head", .object([("status", .int(entry.head.status.rawValue)), ("fields", fields)])))
            switch body {
            case .text(let text): members.append(("body", .string(text)))
            case .base64(let text): members.append(("bodyBase64", .string(text)))
            case .leftOut: break
            }
            return members
        }

        /// The field lines of the head, as HAR has them.
        var fields: JSONText {
            .array(
                entry.head.fields.map {
                    .object([("name", .string($0.name.rawName)), ("value", .string($0.value))])
                }
            )
        }
    }
#endif
