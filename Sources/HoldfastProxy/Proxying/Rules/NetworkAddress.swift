// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Musl)
        private import Musl
    #else
        private import Glibc
    #endif

    /// An IP address, as far as it is to be known whether the world can reach what stands behind it.
    struct NetworkAddress: Sendable, Hashable {
        /// The bytes of the address in network order: 4, or 16 where it is not an IPv4 address in disguise.
        let bytes: [UInt8]

        /// Reads an address in its usual form, without brackets; a zone behind an IPv6 address is left out.
        init?(_ text: String) {
            var bytes = [UInt8](repeating: 0, count: 16)
            if inet_pton(AF_INET, text, &bytes) == 1 {
                self.bytes = Array(bytes[..<4])
            } else if inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &bytes) == 1 {
                self.bytes = NetworkAddress.unwrapped(bytes)
            } else {
                return nil
            }
        }

        /// Whether a host of a URI leads to this machine or its network, as far as its text says.
        ///
        /// A name that ends in a number is no name: resolvers read `2130706433` and `0x7f.1` as addresses, in ways of their own.
        static func isPrivate(host: String) -> Bool {
            var name = host.loweringASCII()
            if name.hasPrefix("["), name.hasSuffix("]") {
                name = String(name.dropFirst().dropLast())
            }
            while name.hasSuffix(".") { name.removeLast() }
            if name.isEmpty || name == "localhost" || name.hasSuffix(".localhost") { return true }
            if let address = NetworkAddress(name) { return address.isPrivate }
            let last = name.split(separator: ".").last ?? ""
            return last.utf8.allSatisfy(\.isDigit) || last.hasPrefix("0x")
        }

        /// Whether the address is none of the world's: this machine, a private network, the link, a group, or nothing at all
        /// (RFC 6890, RFC 1918, RFC 4193, RFC 6598).
        var isPrivate: Bool {
            let blocks = bytes.count == 4 ? NetworkAddress.blocks4 : NetworkAddress.blocks6
            return blocks.contains { block in
                block.prefix.indices.allSatisfy { index in
                    let left = block.length - index * 8
                    let mask: UInt8 = left >= 8 ? 0xFF : left <= 0 ? 0 : ~(0xFF >> UInt8(left))
                    return bytes[index] & mask == block.prefix[index] & mask
                }
            }
        }

        /// An IPv4 address that an IPv6 one carries (mapped, compatible, NAT64, 6to4); else the address itself.
        private static func unwrapped(_ bytes: [UInt8]) -> [UInt8] {
            let zeros = [UInt8](repeating: 0, count: 10)
            if Array(bytes[..<10]) == zeros, bytes[10...11].allSatisfy({ $0 == 0xFF }) { return Array(bytes[12...]) }
            if Array(bytes[..<12]) == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return Array(bytes[12...]) }
            if bytes[0] == 0x20, bytes[1] == 0x02 { return Array(bytes[2..<6]) }
            return bytes
        }

        private static let blocks4: [(prefix: [UInt8], length: Int)] = [
            ([0], 8), ([10], 8), ([100, 64], 10), ([127], 8), ([169, 254], 16), ([172, 16], 12), ([192, 0, 0], 24),
            ([192, 168], 16), ([198, 18], 15), ([224], 4), ([240], 4),
        ]

        private static let blocks6: [(prefix: [UInt8], length: Int)] = [
            // Nothing at all, loopback, and what once carried IPv4 addresses.
            ([UInt8](repeating: 0, count: 12), 96),
            ([0xFC], 7), ([0xFE, 0x80], 10), ([0xFE, 0xC0], 10), ([0xFF], 8),
        ]
    }
#endif
