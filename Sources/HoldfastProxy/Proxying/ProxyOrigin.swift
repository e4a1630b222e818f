// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// The origin that a reverse proxy stands in front of: scheme, host and port.
    public struct ProxyOrigin: Sendable, Hashable, CustomStringConvertible {
        /// The origin as a URI without a slash behind it, such as `http://127.0.0.1:3000`; a default port is left out.
        public let description: String
        /// The host, an IPv6 address in its brackets.
        public let host: String
        /// The port.
        public let port: Int

        /// Reads an origin.
        ///
        /// - Parameter text: an absolute http or https URL without a path: the targets of requests are passed on as they are.
        /// - Throws: ``ProxyConfigurationError`` that says what is wrong with it.
        public init(_ text: String) throws(ProxyConfigurationError) {
            let uri: TargetURI
            do throws(TargetURI.Rejection) {
                uri = try TargetURI(text)
            } catch {
                throw ProxyConfigurationError("'\(text)' is no origin: \(error.message)")
            }
            guard uri.userinfo == nil else {
                throw ProxyConfigurationError(
                    "an origin bears no user name and no password; leave what stands before '@' out"
                )
            }
            guard uri.path == "/", uri.query == nil, !text.contains("#") else {
                throw ProxyConfigurationError(
                    "'\(text)' has a path; an origin is scheme, host and port, as in \(uri.origin)"
                )
            }
            description = uri.origin
            host = uri.host
            port = uri.port ?? (uri.scheme == "https" ? 443 : 80)
        }
    }

    /// A configuration that cannot be used: what is wrong, in one line.
    public struct ProxyConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
        /// What is wrong and what to do about it.
        public let description: String

        init(_ description: String) {
            self.description = description
        }
    }
#endif
