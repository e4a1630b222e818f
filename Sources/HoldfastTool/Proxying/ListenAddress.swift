// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    /// Where to listen, as people write it: `127.0.0.1:8080`, `[::1]:8080`, `:8080` and `8080` for this machine alone.
    struct ListenAddress: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The host, an IPv6 address without its brackets.
        let host: String
        /// The port; 0 for any.
        let port: Int

        init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        init?(argument: String) {
            var host = "127.0.0.1"
            var digits = argument[...]
            if let colon = argument.lastIndex(of: ":") {
                digits = argument[argument.index(after: colon)...]
                let name = argument[..<colon]
                if name.hasPrefix("["), name.hasSuffix("]"), name.contains(":") {
                    host = String(name.dropFirst().dropLast())
                } else if !name.isEmpty {
                    guard !name.contains(where: { ":[]/@".contains($0) || $0.isWhitespace }) else { return nil }
                    host = String(name)
                }
            }
            guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let port = Int(digits),
                port <= 65_535
            else { return nil }
            self.host = host
            self.port = port
        }

        /// The address as it stands in a URL.
        var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

        var defaultValueDescription: String { description }
    }
#endif
