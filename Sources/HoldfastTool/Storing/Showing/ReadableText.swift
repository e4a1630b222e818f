// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// Times and lengths as the commands show them.
    enum ReadableText {
        /// A length of time by its two largest units: `45s`, `2m 5s`, `3h 20m`, `12d 4h`.
        static func span(_ seconds: Int64) -> String {
            let seconds = max(0, seconds)
            let parts = [
                (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"),
            ]
            guard let first = parts.firstIndex(where: { $0.0 > 0 }) else { return "0s" }
            return parts[first..<min(first + 2, parts.count)].filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }
                .joined(separator: " ")
        }

        /// An instant by RFC 3339, in whole seconds of UTC.
        static func instant(_ time: Timestamp) -> String {
            // Beyond these no calendar goes: what a forged entry says must not trap.
            let seconds = min(max(time.secondsSinceEpoch, 0), 253_402_300_799)
            return Date(timeIntervalSince1970: TimeInterval(seconds)).ISO8601Format()
        }

        /// What a response is worth now, in few words.
        static func freshness(_ info: CacheEntryInfo) -> String {
            if info.needsConfirmation { return "to confirm" }
            if info.freshnessLeft > 0 { return "fresh " + span(info.freshnessLeft) }
            return info.freshnessLeft < 0 ? "stale " + span(-info.freshnessLeft) : "stale"
        }

        /// The same text without what would move a terminal's cursor.
        static func harmless(_ text: String) -> String {
            String(
                String.UnicodeScalarView(
                    text.unicodeScalars.map { $0.properties.generalCategory == .control ? "�" : $0 }
                )
            )
        }
    }
#endif
