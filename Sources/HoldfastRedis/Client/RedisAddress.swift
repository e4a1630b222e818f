// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    internal import HoldfastStorage

    /// Where a Redis or Valkey server is, and who asks there: `redis://user:password@host:6379/0`, or `unix:///path?db=0`.
    struct RedisAddress: Sendable, Hashable, CustomStringConvertible {
        /// The way to the server; closed.
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
        /// - Throws: `.badConfiguration` with what would be right; the message shows no password.
        init(_ text: String) throws(StoreError) {
            guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
                throw RedisAddress.refusal("it is no URL")
            }
            user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
            password = parts.password
            switch scheme {
            case "redis", "valkey":
                guard let host = parts.host, !host.isEmpty else { throw RedisAddress.refusal("it names no host") }
                guard let port = Int32(exactly: parts.port ?? 6_379), (1...65_535).contains(port) else {
                    throw RedisAddress.refusal("its port is none")
                }
                let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
                place = .host(bare, port: port)
                database = try RedisAddress.database(parts.path.drop { $0 == "/" })
            case "unix":
                guard parts.path.hasPrefix("/") else { throw RedisAddress.refusal("it names no absolute path") }
                place = .socket(path: parts.path)
                database = try RedisAddress.database((parts.queryItems?.first { $0.name == "db" }?.value ?? "")[...])
            case "rediss", "valkeys":
                throw StoreError(
                    .badConfiguration,
                    "TLS to Redis is not supported by this client; tunnel it (stunnel, a sidecar) and use redis://."
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
                throw refusal("its database is no number")
            }
            return number
        }

        private static func refusal(_ reason: String) -> StoreError {
            StoreError(
                .badConfiguration,
                "The address of Redis cannot be used: \(reason); write redis://[user:password@]host[:port][/database]."
            )
        }
    }
#endif
