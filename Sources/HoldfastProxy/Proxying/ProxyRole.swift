// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// In front of whom a proxy stands.
    public struct ProxyRole: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            case reverse(ProxyOrigin)
            case forward(ForwardRules)
        }

        let kind: Kind

        /// In front of one origin: it is asked for the path and the query of every target, whatever host that names.
        public static func reverse(_ origin: ProxyOrigin) -> ProxyRole {
            ProxyRole(kind: .reverse(origin))
        }

        /// In front of its clients: each names the origin by an absolute URL, over plain http.
        public static func forward(_ rules: ForwardRules = ForwardRules()) -> ProxyRole {
            ProxyRole(kind: .forward(rules))
        }

        /// Whether it is a forward proxy.
        var isForward: Bool {
            if case .forward = kind { true } else { false }
        }
    }
#endif
