// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastAsyncHTTPClient
    internal import HoldfastCommand

    /// What `holdfast get` stands on; tests put something else in its place.
    struct GetEnvironment: Sendable {
        var console: Console
        var transport: any Transport
        /// Ends the transport.
        var end: @Sendable () async -> Void = {}
        var clock: any HoldfastClock = SystemClock()
        /// Where the cache lies unless the command line says.
        var cacheDirectory: URL
        /// Where files are saved.
        var workingDirectory = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)

        /// The network: AsyncHTTPClient, over HTTP/1.1 and HTTP/2. To be ended.
        static func network(_ console: Console, cacheDirectory: URL) -> GetEnvironment {
            let transport = AsyncHTTPClientTransport()
            return GetEnvironment(
                console: console,
                transport: transport,
                end: { try? await transport.shutdown() },
                cacheDirectory: cacheDirectory
            )
        }

        /// The folder for caches that the platform has for each user, and `holdfast` in it.
        ///
        /// `$XDG_CACHE_HOME` where it is set and absolute; else `~/Library/Caches` on Apple systems and `~/.cache` elsewhere.
        static func userCacheDirectory(_ environment: [String: String]) -> URL {
            if let path = environment["XDG_CACHE_HOME"], path.hasPrefix("/") {
                return URL(fileURLWithPath: path).appendingPathComponent("holdfast")
            }
            let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
            let own = home ?? FileManager.default.homeDirectoryForCurrentUser
            #if canImport(Darwin)
                return own.appendingPathComponent("Library/Caches/holdfast")
            #else
                return own.appendingPathComponent(".cache/holdfast")
            #endif
        }
    }
#endif
