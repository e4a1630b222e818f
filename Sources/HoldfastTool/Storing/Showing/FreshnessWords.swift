// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastSemantics

    /// Why a stored response is fresh or stale, with the sections of the standard.
    struct FreshnessWords: Sendable {
        /// The rule that gave the lifetime.
        let rule: String
        /// Where that rule stands; nil for the cache's own.
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
#endif
