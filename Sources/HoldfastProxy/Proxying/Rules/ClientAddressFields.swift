// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// Whether and how the origin is told who asked.
    public struct ClientAddressFields: Sendable, Hashable {
        enum Kind: Sendable, Hashable { case none, xForwardedFor, forwarded }

        let kind: Kind

        /// It is not told; fields of the client's own pass as they are. The default.
        public static let none = ClientAddressFields(kind: .none)
        /// The address is added to X-Forwarded-For.
        public static let xForwardedFor = ClientAddressFields(kind: .xForwardedFor)
        /// The address is added to Forwarded (RFC 7239).
        public static let forwarded = ClientAddressFields(kind: .forwarded)

        /// Adds an address behind those that are there.
        ///
        /// - Parameter address: an IP address without brackets and port; nil where there is none, as on a Unix domain socket.
        func add(_ address: String?, to fields: inout HeaderFields) {
            switch kind {
            case .none:
                return
            case .xForwardedFor:
                guard let address else { return }
                fields.append("X-Forwarded-For", address)
            case .forwarded:
                let node = address.map { $0.contains(":") ? "\"[\($0)]\"" : $0 } ?? "unknown"
                fields.append("Forwarded", "for=\(node)")
            }
        }
    }
#endif
