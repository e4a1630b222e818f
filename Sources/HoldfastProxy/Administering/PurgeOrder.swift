// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// What an operator wants to be purged: `PURGE URL`, or `POST /purge?url=…&prefix=…&tag=…&all=1&soft=1`.
    struct PurgeOrder: Sendable {
        let selections: [CacheSelection]
        /// Whether the responses are marked, so that the origin must confirm them, rather than removed.
        let isSoft: Bool

        /// Reads an order.
        ///
        /// - Parameter origin: what a path without a host belongs to.
        /// - Throws: a refusal where it names nothing, or something else than it says.
        init(_ request: InspectorRequest, origin: ProxyOrigin?) throws(InspectorGuard.Refusal) {
            func target(_ text: String) throws(InspectorGuard.Refusal) -> (url: URL, canonical: String) {
                let whole = text.hasPrefix("/") ? (origin?.description ?? "") + text : text
                guard let uri = try? TargetURI(tolerating: whole), let url = URL(string: uri.canonical) else {
                    throw InspectorGuard.Refusal(
                        status: 400,
                        message:
                            "'\(ProxyFailure(.request, text: text).text)' is no URL; write http://example.com/path, or /path."
                    )
                }
                return (url, uri.canonical)
            }
            var selections: [CacheSelection] = []
            if request.method == "PURGE" {
                isSoft = ["Soft-Purge", "Fastly-Soft-Purge"].contains { (name: FieldName) in
                    request.fields.values(of: name) == ["1"]
                }
                let tags = (request.fields["Surrogate-Key"] ?? "").split(separator: " ")
                selections = tags.map { .tag(String($0)) }
                if tags.isEmpty { selections = [.url(try target(request.target).url)] }
            } else {
                isSoft = request.argument("soft") == "1"
                for (name, value) in request.arguments {
                    switch name {
                    case "url": selections.append(.url(try target(value).url))
                    case "prefix": selections.append(.prefix(try target(value).canonical))
                    case "tag" where !value.isEmpty: selections.append(.tag(value))
                    case "all" where value == "1": selections.append(.all)
                    case "soft": break
                    default:
                        throw InspectorGuard.Refusal(
                            status: 400,
                            message:
                                "Say what to purge: url=, prefix=, tag= or all=1; and soft=1 to have it confirmed only."
                        )
                    }
                }
            }
            guard !selections.isEmpty else {
                throw InspectorGuard.Refusal(
                    status: 400,
                    message: "Say what to purge: POST /purge?url=…, prefix=…, tag=… or all=1."
                )
            }
            self.selections = selections
        }
    }
#endif
