// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// The server that connections lead to, and how: connections with the same key can stand in for each other.
    struct OriginKey: Sendable, Hashable, CustomStringConvertible {
        /// Whether TLS is spoken.
        var isSecure: Bool
        /// The host in lower case; an IPv6 address without its brackets.
        var host: String
        var port: Int

        var description: String {
            "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }
    }
#endif
