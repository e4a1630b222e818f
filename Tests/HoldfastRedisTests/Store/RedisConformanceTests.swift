// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import Foundation
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import HoldfastRedis

    @Suite(
        "RedisStore passes the store conformance suite",
        .enabled(if: RedisServer.program != nil, "redis-server is not installed"),
        .timeLimit(.minutes(20))
    )
    struct RedisConformanceTests {
        static func options(_ prefix: String, capacity: Int, memory: Int) -> RedisOptions {
            var options = RedisOptions()
            (options.prefix, options.capacity, options.memory) = (prefix, capacity, memory)
            // A busy machine must not look like a lost server.
            (options.connectTimeout, options.commandTimeout) = (.seconds(60), .seconds(60))
            return options
        }

        static func factory(memory: Int) -> StoreFactory {
            StoreFactory(memory == 0 ? "RedisStore without copies" : "RedisStore") { capacity in
                let server = try RedisServer.one()
                let prefix = "law-\(UInt64.random(in: 0...UInt64.max))"
                let options = options(prefix, capacity: capacity, memory: memory)
                let store = try await RedisStore.connect(server.address, options: options)
                return StoreSubject(
                    store,
                    reopen: { try await RedisStore.connect(server.address, options: options) }
                )
            }
        }

        @Test("Every law, if each read asks the server", arguments: StoreConformance.laws)
        func plain(_ law: StoreConformance.Law) async {
            let findings = await law.findings(of: Self.factory(memory: 0))
            #expect(findings.isEmpty, "\(findings.map(\.description).prefix(6).joined(separator: "\n"))")
        }

        @Test("Every law, with copies in memory", arguments: StoreConformance.laws)
        func tiered(_ law: StoreConformance.Law) async {
            let findings = await law.findings(of: Self.factory(memory: 8 << 20))
            #expect(findings.isEmpty, "\(findings.map(\.description).prefix(6).joined(separator: "\n"))")
        }
    }
#endif
