// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// The origin a request goes to, as far as it tells partitions apart: scheme, host and port (RFC 9110 §4.3.1).
///
/// Cheaper than a parsed target URI, since it is asked for once an attempt; free of user information.
struct RequestOrigin: Sendable, Hashable, CustomStringConvertible {
    let description: String

    init(_ request: URLRequest) {
        guard let url = request.url, let host = url.host else {
            description = "(no origin)"
            return
        }
        let scheme = url.scheme?.lowercased() ?? "http"
        var text = "\(scheme)://\(host.lowercased())"
        if let port = url.port, port != (scheme == "https" ? 443 : 80) { text += ":\(port)" }
        description = text
    }
}
