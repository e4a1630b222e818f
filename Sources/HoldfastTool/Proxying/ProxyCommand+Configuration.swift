// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import HoldfastRedis
    internal import HoldfastSemantics
    internal import HoldfastStorage

    extension ProxyCommand {
        /// The options as the proxy takes them, but for the cache.
        ///
        /// - Throws: ``CommandFailure`` with status 64.
        func proxyConfiguration() throws -> ProxyConfiguration {
            var configuration = ProxyConfiguration(try role())
            configuration.host = listen.host
            configuration.port = listen.port
            configuration.retrierFactory = retry.factory
            configuration.viaName = via
            configuration.clientAddressFields =
                switch clientAddress {
                case .none: .none
                case .xForwardedFor: .xForwardedFor
                case .forwarded: .forwarded
                }
            configuration.answerTimeout = timeout.limit
            guard maxConnections > 0 else { throw CommandFailure.usage("--max-connections is to be at least 1") }
            configuration.limits.connections = maxConnections
            guard (1_024...16_777_216).contains(headerLimit.bytes) else {
                throw CommandFailure.usage("--header-limit is to lie between 1KiB and 16MiB")
            }
            configuration.limits.headBytes = headerLimit.bytes
            configuration.limits.idleTimeout = clientIdle.limit ?? .seconds(86_400)
            if let inspect, !(0...65_535).contains(inspect) {
                throw CommandFailure.usage("--inspect \(inspect) is no port; choose one from 1 to 65535, or 0 for any")
            }
            if let cacheStatus, FieldName(cacheStatus) == nil {
                throw CommandFailure.usage(
                    "--cache-status '\(cacheStatus)' is no token; choose letters, digits and hyphens"
                )
            }
            do throws(ProxyConfigurationError) {
                try configuration.validate()
            } catch {
                let hint = forward && !openForwardProxy ? " (--open-forward-proxy)" : ""
                throw CommandFailure.usage(error.description + (error.description.contains("be open") ? hint : ""))
            }
            return configuration
        }

        private func role() throws -> ProxyRole {
            if forward {
                guard origin == nil else { throw CommandFailure.usage("--origin and --forward exclude each other") }
                var rules = ForwardRules()
                rules.isOpen = openForwardProxy
                rules.allowedHosts = allowHost
                rules.deniesPrivateAddresses = denyPrivate ? true : nil
                return .forward(rules)
            }
            guard let origin else { throw CommandFailure.usage("say whom to ask: --origin URL, or --forward") }
            guard allowHost.isEmpty, !denyPrivate, !openForwardProxy else {
                throw CommandFailure.usage("--allow-host, --deny-private and --open-forward-proxy are for --forward")
            }
            do throws(ProxyConfigurationError) {
                return .reverse(try ProxyOrigin(origin))
            } catch {
                throw CommandFailure.usage("--origin: \(error)")
            }
        }

        /// The rules of the cache.
        var cacheOptions: CacheOptions {
            var options: CacheOptions = mode == .shared ? .shared : .private
            options.cacheName = cacheStatus
            return options
        }

        /// The cache that the options ask for; nil where they leave it no room.
        ///
        /// - Throws: ``CommandFailure``: 64 for options that do not go together, 1 where a store cannot be opened.
        func makeCache() async throws -> HTTPCache? {
            if let redis {
                guard disk == nil else { throw CommandFailure.usage("--disk and --redis exclude each other") }
                return try await redisCache(redis)
            }
            guard let disk else {
                return memory.bytes > 0 ? .inMemory(capacity: memory.bytes, options: cacheOptions) : nil
            }
            let directory = URL(fileURLWithPath: disk, isDirectory: true)
            do {
                guard memory.bytes > 0 else {
                    return try await .onDisk(at: directory, capacity: diskSize.bytes, options: cacheOptions)
                }
                return try await .tiered(
                    at: directory,
                    memory: memory.bytes,
                    capacity: diskSize.bytes,
                    options: cacheOptions
                )
            } catch let error as StoreError {
                throw CommandFailure("--disk \(disk): \(error.message)")
            }
        }

        private func redisCache(_ url: String) async throws -> HTTPCache {
            #if Redis
                var options = RedisOptions()
                options.memory = memory.bytes
                do throws(StoreError) {
                    return HTTPCache(store: try await RedisStore.connect(url, options: options), options: cacheOptions)
                } catch {
                    throw CommandFailure(
                        "--redis: \(error.message)",
                        exitStatus: error.code == .badConfiguration ? 64 : 1
                    )
                }
            #else
                throw CommandFailure.usage(
                    "--redis needs the trait Redis: swift run --traits Tool,Redis holdfast proxy …"
                )
            #endif
        }
    }

    extension TimeSpan {
        /// The time as a limit; nil for 0.
        fileprivate var limit: Duration? { duration > .zero ? duration : nil }
    }
#endif
