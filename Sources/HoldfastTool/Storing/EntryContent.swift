// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// One stored response with its body, in a form that fits into JSON.
    struct EntryContent: Sendable {
        /// The body, or why it is missing.
        enum Body: Sendable {
            case text(String)
            case base64(String)
            /// It is missing, with the reason.
            case leftOut(String)
        }

        let entry: ExportedEntry
        let body: Body

        /// Reads the body if it is wanted and not too long.
        init(_ entry: ExportedEntry, withBody: Bool, upTo limit: Int) async throws {
            self.entry = entry
            let length = entry.body.length ?? .max
            guard withBody else {
                body = .leftOut("left out")
                return
            }
            guard length <= limit else {
                body = .leftOut("left out: \(length) bytes exceed the limit of \(limit)")
                return
            }
            do {
                let bytes = try await entry.body.collect(upTo: limit)
                body = Self.body(bytes, fields: entry.head.fields)
            } catch {
                if error is CancellationError { throw error }
                body = .leftOut("left out: the stored bytes are damaged or gone")
            }
        }

        private static func body(_ bytes: ByteChunk, fields: HeaderFields) -> Body {
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
            let words = FreshnessText(entry)
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

        /// The field lines of the head, in HAR format.
        var fields: JSONText {
            .array(
                entry.head.fields.map {
                    .object([("name", .string($0.name.rawName)), ("value", .string($0.value))])
                }
            )
        }
    }

    extension CacheEntryInfo {
        /// Everything that a listing shows. The URL has no user information, and credentials that Vary nominates are
        /// hidden.
        var json: [(String, JSONText)] {
            [
                ("url", .string(target.canonical)),
                ("method", .string(method.rawValue)),
                ("status", .int(status.rawValue)),
                ("bodyBytes", .int(bodyLength)),
                ("storedBytes", storedBytes.map(JSONText.int) ?? .null),
                ("storedAt", .string(ReadableText.instant(storedAt))),
                ("age", .int(Int(clamping: age))),
                ("freshnessLeft", .int(Int(clamping: freshnessLeft))),
                ("isFresh", .bool(isFresh)),
                ("needsConfirmation", .bool(needsConfirmation)),
                ("hits", hits.map(JSONText.int) ?? .null),
                ("tags", .array(tags.sorted().map(JSONText.string))),
                ("varies", .object(nominated.map { ($0.name, $0.value.json) })),
                ("isPersonal", .bool(isPersonal)),
                ("isPinned", .bool(isPinned)),
                ("isPartial", .bool(storedRanges != nil)),
            ]
        }

        /// What distinguishes this variant from others, and what else is special about it.
        var notes: String {
            var notes = nominated.map(\.description)
            if isPersonal { notes.append("personal") }
            if isPinned { notes.append("pinned") }
            if storedRanges != nil { notes.append("partial") }
            return notes.joined(separator: ", ")
        }
    }

    extension NominatedField.Value {
        fileprivate var json: JSONText {
            if let text { return .string(text) }
            return isHidden ? .string("(hidden)") : .null
        }
    }

    /// Why a stored response is fresh or stale, with the sections of the standard.
    struct FreshnessText: Sendable {
        /// The rule that gave the lifetime.
        let rule: String
        /// The section with that rule; nil for the cache's own.
        let section: String?
        /// One sentence.
        let text: String

        init(_ entry: ExportedEntry) {
            let info = entry.info
            (rule, section) = Self.rule(entry.lifetime.source)
            let lifetime = ReadableText.span(entry.lifetime.seconds)
            let by = rule + (section.map { " (\($0))" } ?? "")
            let age = "its age is \(ReadableText.span(info.age)) (RFC 9111 §4.2.3)"
            if info.needsConfirmation {
                text = "the origin must confirm it before use (RFC 9111 §4.3)"
            } else if info.freshnessLeft > 0 {
                text =
                    "fresh for \(ReadableText.span(info.freshnessLeft)): its lifetime is \(lifetime), by \(by), \(age)"
            } else if entry.lifetime.source == .none {
                text = "stale: nothing says how long it is fresh (\(Self.rule(.none).section ?? "")), \(age)"
            } else {
                let stale = ReadableText.span(-info.freshnessLeft)
                text = "stale for \(stale): its lifetime was \(lifetime), by \(by), \(age)"
            }
        }

        private static func rule(_ source: FreshnessLifetime.Source) -> (name: String, section: String?) {
            switch source {
            case .sMaxAge: ("s-maxage", "RFC 9111 §5.2.2.10")
            case .maxAge: ("max-age", "RFC 9111 §5.2.2.1")
            case .expires: ("Expires", "RFC 9111 §5.3")
            case .heuristic: ("a share of the time since Last-Modified", "RFC 9111 §4.2.2")
            case .fixed: ("the cache's own options", nil)
            case .given: ("the call that fetched it", nil)
            case .negative: ("the cache's own limit for errors", nil)
            case .none: ("none", "RFC 9111 §4.2.1")
            }
        }
    }

    /// Times and lengths as the commands show them.
    enum ReadableText {
        /// A length of time in its two largest units: `45s`, `2m 5s`, `3h 20m`, `12d 4h`.
        static func span(_ seconds: Int64) -> String {
            let seconds = max(0, seconds)
            let parts = [
                (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"),
            ]
            guard let first = parts.firstIndex(where: { $0.0 > 0 }) else { return "0s" }
            return parts[first..<min(first + 2, parts.count)].filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }
                .joined(separator: " ")
        }

        /// An instant in the format of RFC 3339, in whole seconds of UTC.
        static func instant(_ time: Timestamp) -> String {
            // Calendars end here, and a forged entry must not trap.
            let seconds = min(max(time.secondsSinceEpoch, 0), 253_402_300_799)
            return Date(timeIntervalSince1970: TimeInterval(seconds)).ISO8601Format()
        }

        /// The freshness of a response, in a few words.
        static func freshness(_ info: CacheEntryInfo) -> String {
            if info.needsConfirmation { return "to confirm" }
            if info.freshnessLeft > 0 { return "fresh " + span(info.freshnessLeft) }
            return info.freshnessLeft < 0 ? "stale " + span(-info.freshnessLeft) : "stale"
        }

        /// The same text without control characters, which could move a terminal's cursor.
        static func harmless(_ text: String) -> String {
            String(
                String.UnicodeScalarView(
                    text.unicodeScalars.map { $0.properties.generalCategory == .control ? "�" : $0 }
                )
            )
        }
    }
#endif
