// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// What a person wants to be purged.
    struct PurgeOrder: Decodable, Sendable {
        /// What became of it.
        struct Outcome: Encodable, Sendable {
            /// How many responses were removed or marked; nil where the store has not counted them.
            let count: Int?
        }

        static let longest = 16_384

        /// `entry`, `prefix`, `tag` or `all`.
        let selection: String
        /// The entry's name, the URL, or the tag; nothing for all.
        let value: String?
        /// Whether the responses are marked, so that the origin must confirm them, rather than removed.
        let softly: Bool

        /// Reads an order.
        ///
        /// - Throws: a refusal where it is none.
        static func read(_ bytes: ByteChunk) throws(InspectorGuard.Refusal) -> PurgeOrder {
            do {
                return try JSONDecoder().decode(PurgeOrder.self, from: bytes.withUnsafeBytes { Data($0) })
            } catch {
                throw InspectorGuard.Refusal(
                    status: 400,
                    message: "The order cannot be read; send {\"selection\": \"all\", \"softly\": false} or its like."
                )
            }
        }

        /// The responses that are meant.
        ///
        /// - Throws: a refusal where the order names none, or something else than it says.
        func selected(_ book: EntryBook) throws(InspectorGuard.Refusal) -> CacheSelection {
            switch (selection, value) {
            case ("all", nil): return .all
            case ("tag", let tag?) where !tag.isEmpty: return .tag(tag)
            case ("prefix", let text?):
                guard let target = try? TargetURI(text), let url = URL(string: target.canonical) else {
                    throw InspectorGuard.Refusal(
                        status: 400,
                        message: "A prefix is a URL, such as http://example.com/images."
                    )
                }
                return .prefix(url)
            case ("entry", let name?):
                guard let chosen = book.entry(name) else {
                    throw InspectorGuard.Refusal(
                        status: 404,
                        message: "The entry is not known any more; list the entries again."
                    )
                }
                return .matching { $0.key == chosen.key && $0.variant == chosen.variant }
            default:
                throw InspectorGuard.Refusal(
                    status: 400,
                    message: "Say what to purge: an entry, a prefix or a tag with its value, or all without one."
                )
            }
        }
    }
#endif
