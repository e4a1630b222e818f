// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// An HTTP Archive, version 1.2, written entry by entry.
    ///
    /// Of the request the archive says what the cache knows: method, URL and the fields that Vary names, credentials left out.
    struct HTTPArchive {
        private let write: (Data) throws -> Void
        private var isEmpty = true

        /// Begins an archive; what is written goes to `write` at once.
        init(_ write: @escaping (Data) throws -> Void) throws {
            self.write = write
            let creator = #"{"name":"holdfast","version":"\#(ToolVersion.text)"}"#
            try write(Data(#"{"log":{"version":"1.2","creator":\#(creator),"entries":["#.utf8))
        }

        mutating func add(_ content: EntryContent) throws {
            try write(Data(((isEmpty ? "\n" : ",\n") + Self.json(content).text).utf8))
            isEmpty = false
        }

        func end() throws {
            try write(Data("\n]}}\n".utf8))
        }

        private static func json(_ content: EntryContent) -> JSONText {
            let info = content.entry.info
            return .object([
                ("startedDateTime", .string(ReadableText.instant(info.storedAt))),
                ("time", .int(0)),
                ("request", request(info)),
                ("response", response(content)),
                ("cache", .object([])),
                ("timings", .object([("send", .int(0)), ("wait", .int(0)), ("receive", .int(0))])),
                ("_holdfast", .object(info.json.filter { !["url", "method", "status"].contains($0.0) })),
            ])
        }

        private static func request(_ info: CacheEntryInfo) -> JSONText {
            let fields = info.nominated.compactMap { field in
                field.value.text.map { JSONText.object([("name", .string(field.name)), ("value", .string($0))]) }
            }
            return .object([
                ("method", .string(info.method.rawValue)),
                ("url", .string(info.target.canonical)),
                ("httpVersion", .string("HTTP/1.1")),
                ("cookies", .array([])),
                ("headers", .array(fields)),
                ("queryString", .array(query(info.target))),
                ("headersSize", .int(-1)),
                ("bodySize", .int(-1)),
            ])
        }

        private static func query(_ target: TargetURI) -> [JSONText] {
            (target.query ?? "").split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                func plain(_ text: Substring?) -> JSONText {
                    let text = String(text ?? "")
                    return .string(text.removingPercentEncoding ?? text)
                }
                return .object([("name", plain(parts.first)), ("value", plain(parts.dropFirst().first))])
            }
        }

        private static func response(_ content: EntryContent) -> JSONText {
            let (head, length) = (content.entry.head, content.entry.body.length ?? 0)
            var body: [(String, JSONText)] = [
                ("size", .int(length)),
                ("mimeType", .string(head.fields[.contentType] ?? "x-unknown")),
            ]
            switch content.body {
            case .text(let text): body.append(("text", .string(text)))
            case .base64(let text): body += [("text", .string(text)), ("encoding", .string("base64"))]
            case .leftOut(let why): body.append(("comment", .string(why)))
            }
            return .object([
                ("status", .int(head.status.rawValue)),
                ("statusText", .string("")),
                ("httpVersion", .string("HTTP/1.1")),
                ("cookies", .array([])),
                ("headers", content.fields),
                ("content", .object(body)),
                ("redirectURL", .string(head.fields[.location] ?? "")),
                ("headersSize", .int(content.entry.headBytes.count)),
                ("bodySize", .int(length)),
            ])
        }
    }
#endif
