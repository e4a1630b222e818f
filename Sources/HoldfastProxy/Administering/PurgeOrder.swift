// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// A purge that an operator requests: `PURGE URL`, or `POST /purge?url=…&prefix=…&tag=…&all=1&soft=1`.
    struct PurgeOrder: Sendable {
        let selections: [CacheSelection]
        /// Whether to mark the responses, so that the origin must confirm them, instead of removing them.
        let isSoft: Bool

        /// Reads the body of `holdfast cache purge`: an ``EntryMatch``.
        ///
        /// - Throws: a refusal if it is not valid.
        init(matching request: InspectorRequest) async throws(InspectorGuard.Refusal) {
            _ = try request.arguments(named: [])
            guard request.fields[.contentType] == "application/json",
                let content = try? await request.content(upTo: PurgeOrder.longestMatch),
                let match = try? EntryMatch(json: content.withUnsafeBytes { Data($0) }),
                let predicate = try? match.predicate()
            else {
                throw .invalid("This is not a purge that this version of holdfast understands.")
            }
            selections = [.matching(predicate)]
            isSoft = false
        }

        private static let longestMatch = 1 << 20

        /// Reads a purge request.
        ///
        /// - Parameter origin: the origin of paths without a host.
        /// - Throws: a refusal if nothing is selected, or the request is invalid.
        init(_ request: InspectorRequest, origin: ProxyOrigin?) throws(InspectorGuard.Refusal) {
            func target(_ text: String) throws(InspectorGuard.Refusal) -> (url: URL, canonical: String) {
                let whole = text.hasPrefix("/") ? (origin?.description ?? "") + text : text
                guard let uri = try? TargetURI(tolerating: whole), let url = URL(string: uri.canonical) else {
                    throw .invalid(
                        "'\(ProxyFailure(.request, text: text).text)' is not a URL. Use http://example.com/path, or /path."
                    )
                }
                return (url, uri.canonical)
            }
            var selections: [CacheSelection] = []
            if request.method == "PURGE" {
                let names: [FieldName] = ["Soft-Purge", "Fastly-Soft-Purge"]
                isSoft = try PurgeOrder.isSoft(names.flatMap { request.fields.values(of: $0) }, name: "Soft-Purge")
                let tags = (request.fields["Surrogate-Key"] ?? "").split(separator: " ")
                selections = tags.map { .tag(String($0)) }
                if tags.isEmpty { selections = [.url(try target(request.target).url)] }
            } else {
                let arguments = try request.arguments()
                isSoft = try PurgeOrder.isSoft(arguments.filter { $0.name == "soft" }.map(\.value), name: "soft")
                for (name, value) in arguments {
                    switch name {
                    case "url": selections.append(.url(try target(value).url))
                    case "prefix":
                        // Only checked here: the text may end within a segment or an escape.
                        _ = try target(value)
                        selections.append(.prefix(value.hasPrefix("/") ? (origin?.description ?? "") + value : value))
                    case "tag" where !value.isEmpty: selections.append(.tag(value))
                    case "all" where value == "1": selections.append(.all)
                    case "soft": break
                    default:
                        throw .invalid(
                            "Specify what to purge: url=, prefix=, tag= or all=1; add soft=1 to require confirmation instead of removal."
                        )
                    }
                }
                guard selections.count < 2 || !arguments.contains(where: { $0.name == "all" }) else {
                    throw .invalid("all=1 purges everything; leave it or the others out. Nothing was purged.")
                }
            }
            guard !selections.isEmpty else {
                throw .invalid("Specify what to purge: POST /purge?url=…, prefix=…, tag=… or all=1.")
            }
            self.selections = selections
        }

        /// Whether a purge is soft.
        ///
        /// - Parameter values: what the request says about that; nothing means that it is not.
        /// - Throws: a refusal if a value is not 0 or 1, or if there are several: a purge that removes what it should
        ///   only mark cannot be undone.
        private static func isSoft(_ values: [String], name: String) throws(InspectorGuard.Refusal) -> Bool {
            guard let value = values.first else { return false }
            guard values.count == 1, value == "0" || value == "1" else {
                throw .invalid(
                    "\(name) must be given once, as 1 to require confirmation or as 0 to remove. Nothing was purged."
                )
            }
            return value == "1"
        }
    }
#endif
