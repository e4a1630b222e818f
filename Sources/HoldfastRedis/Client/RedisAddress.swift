// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    internal import HoldfastStorage

    /// The address of a Redis or Valkey server, and the user: `redis://user:password@host:6379/0`, or `unix:///path?db=0`.
    struct RedisAddress: Sendable, Hashable, CustomStringConvertible {
        /// How the server is reached; closed.
        enum Place: Sendable, Hashable {
            case host(String, port: Int32)
            case socket(path: String)
        }

        let place: Place
        let user: String?
        let password: String?
        let database: Int

        /// Reads an address.
        ///
        /// - Throws: `.badConfiguration` with the correct form; the message shows no password.
        init(_ text: String) throws(StoreError) {
            guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
                throw RedisAddress.refusal("it is not a URL")
            }
            user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
            password = parts.password
            switch scheme {
            case "redis", "valkey":
                guard let host = parts.host, !host.isEmpty else { throw RedisAddress.refusal("it has no host") }
                guard let port = Int32(exactly: parts.port ?? 6_379), (1...65_535).contains(port) else {
                    throw RedisAddress.refusal("its port is invalid")
                }
                let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
                place = .host(bare, port: port)
                database = try RedisAddress.database(parts.path.drop { $0 == "/" })
            case "unix":
                guard parts.path.hasPrefix("/") else { throw RedisAddress.refusal("it has no absolute path") }
                place = .socket(path: parts.path)
                database = try RedisAddress.database((parts.queryItems?.first { $0.name == "db" }?.value ?? "")[...])
            case "rediss", "valkeys":
                throw StoreError(
                    .badConfiguration,
                    "This client does not support TLS to Redis. Use a tunnel (stunnel, a sidecar) and redis://."
                )
            default: throw RedisAddress.refusal("its scheme is \(scheme)")
            }
        }

        /// The address without user and password.
        var description: String {
            switch place {
            case .host(let host, let port): "\(host.contains(":") ? "[\(host)]" : host):\(port)/\(database)"
            case .socket(let path): "\(path), database \(database)"
            }
        }

        private static func database(_ text: Substring) throws(StoreError) -> Int {
            if text.isEmpty { return 0 }
            guard let number = Int(text), (0...65_535).contains(number) else {
                throw refusal("its database is not a number")
            }
            return number
        }

        private static func refusal(_ reason: String) -> StoreError {
            StoreError(
                .badConfiguration,
                "The address of Redis is invalid: \(reason). Use redis://[user:password@]host[:port][/database]."
            )
        }
    }
#endif
