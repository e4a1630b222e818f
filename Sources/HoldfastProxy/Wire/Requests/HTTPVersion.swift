// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// The versions that are spoken; closed, since other ones are refused.
    package enum HTTPVersion: Sendable, Hashable {
        /// HTTP/1.0 (RFC 1945).
        case http10
        /// HTTP/1.1 (RFC 9112).
        case http11
    }
#endif
