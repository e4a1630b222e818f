// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastRedis

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(
        "Every kind of Redis server",
        .enabled(if: RedisServer.program != nil, "redis-server is not installed"),
        .timeLimit(.minutes(20))
    )
    struct RedisKindsTests {
        enum Kind: String, CaseIterable {
            case plain, socket, password, acl, full
            case lru = "allkeys-lru"
            case lfu = "allkeys-lfu"
            case random = "allkeys-random"
            case restarted, flushed, rolledBack, stopped, demoted

            /// What docs/operating/redis.md lists, and no more.
            static let commands = """
                auth select ping client|setname evalsha eval decr del exists expire get hdel hexists
                hget hincrby hlen hmget hset incr persist pexpire pttl publish rename sadd scard set
                sismember spop srem subscribe time unlink zadd zcard zrange zrangebylex
                zrangebyscore zrem zrevrange zscore
                """
            static let rules =
                ["on", ">open", "~holdfast:2:{kinds}:*", "&holdfast:2:{kinds}:*", "-@all"]
                + commands.split(whereSeparator: \.isWhitespace).map { "+" + $0 }

            func server() throws -> RedisServer {
                switch self {
                case .password: return try RedisServer("--requirepass", "open")
                case .acl:
                    let server = try RedisServer()
                    server.ask(["ACL", "SETUSER", "cache"] + Kind.rules)
                    return server
                case .full: return try RedisServer("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
                case .lru, .lfu, .random: return try RedisServer("--maxmemory", "3mb", "--maxmemory-policy", rawValue)
                default: return try RedisServer()
                }
            }

            func address(of server: RedisServer) -> String {
                switch self {
                case .socket: "unix://\(server.socketPath)"
                case .password: "redis://:open@127.0.0.1:\(server.port)"
                case .acl: "redis://cache:open@127.0.0.1:\(server.port)"
                default: server.address
                }
            }

            /// What befalls the server in the middle of a round, before the change.
            func strike(_ server: RedisServer, round: Int) throws {
                switch self {
                case .restarted where round % 3 == 1:
                    server.kill()
                    try server.restart()
                case .flushed where round % 2 == 1: server.ask("FLUSHALL")
                case .stopped where round % 3 == 1: server.freeze()
                case .demoted where round % 3 == 1: server.ask("REPLICAOF", "127.0.0.1", "1")
                default: break
                }
            }

            /// How the server is well again, after the change.
            func heal(_ server: RedisServer) {
                switch self {
                case .stopped: server.thaw()
                case .demoted: server.ask("REPLICAOF", "NO", "ONE")
                default: break
                }
            }
        }

        /// Pages of users and of everyone, each of a version that a POST raises.
        private final class Origin: Transport {
            private let versions = Mutex<[String: Int]>([:])
            let asked = CountWatch()

            func version(_ path: String, _ user: String) -> Int { versions.withLock { $0[path + " " + user] ?? 0 } }

            func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                let user = request.value(forHTTPHeaderField: "Authorization") ?? ""
                let path = request.url?.path ?? ""
                let version = versions.withLock { versions in
                    if request.httpMethod == "POST" { versions[path + " " + user, default: 0] += 1 }
                    return versions[path + " " + user] ?? 0
                }
                asked.increment()
                let padding = path.hasPrefix("/fill") ? String(repeating: "x", count: 9_000) : ""
                return Response(
                    status: .ok,
                    fields: ["Cache-Control": user.isEmpty ? "max-age=600" : "private, max-age=600"],
                    body: ResponseBody(ByteChunk(copying: "\(user) \(version) \(padding)".utf8))
                )
            }
        }

        private final class Member: Sendable {
            let store: RedisStore
            private let pipeline: Pipeline

            init(_ address: String, _ origin: any Transport) async throws {
                var options = RedisOptions()
                (options.prefix, options.capacity, options.memory) = ("kinds", 64 << 20, 8 << 20)
                (options.connectTimeout, options.commandTimeout) = (.seconds(5), .seconds(2))
                store = try await RedisStore.connect(address, options: options)
                var configuration = PipelineConfiguration()
                configuration.attemptTimeout = nil
                pipeline = Pipeline(transport: origin, cache: HTTPCache(store: store), configuration: configuration)
            }

            func call(_ path: String, as user: String = "", method: String = "GET") async throws -> [Substring] {
                var request = URLRequest(url: try #require(URL(string: "http://origin.example\(path)")))
                request.httpMethod = method
                if !user.isEmpty { request.setValue(user, forHTTPHeaderField: "Authorization") }
                let bytes = try await pipeline.send(request).body.collect().array
                return String(decoding: bytes, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
            }
        }

        @Test(
            "An invalidation reaches the other process, for shared and for two users' entries, and the store recovers",
            arguments: Kind.allCases
        )
        func isSeen(_ kind: Kind) async throws {
            let server = try kind.server()
            let origin = Origin()
            let members = [
                try await Member(kind.address(of: server), origin), try await Member(kind.address(of: server), origin),
            ]
            #expect(members[0].store.secret == members[1].store.secret)
            let users = ["", "Bearer alice", "Bearer bob"]
            var (stale, foreign, looked, filled) = (0, 0, 0, 0)
            func look(_ path: String) async throws {
                for member in members {
                    for user in users {
                        let words = try await member.call(path, as: user)
                        let (whose, version) = (
                            words.dropLast(2).joined(separator: " "), Int(words[words.count - 2]) ?? 0
                        )
                        looked += 1
                        if whose != user { foreign += 1 }
                        if version < origin.version(path, user) { stale += 1 }
                    }
                }
            }
            for round in 0..<12 {
                let path = "/page\(round % 4)"
                for _ in 0..<3 { try await look(path) }
                if server.info("maxmemory") ?? 0 > 0 {
                    for _ in 0..<60 {
                        filled += 1
                        _ = try await members[filled % 2].call("/fill\(filled)")
                    }
                }
                try kind.strike(server, round: round)
                for user in users { _ = try await members[round % 2].call(path, as: user, method: "POST") }
                if kind == .rolledBack, round % 3 == 1 {
                    // As after a crash that an old snapshot outlives.
                    try await Self.rollBack(server) {
                        for user in users { _ = try await members[round % 2].call(path, as: user, method: "POST") }
                    }
                }
                kind.heal(server)
                // Nobody asks the server meanwhile: what it is owed it gets all the same.
                try await RedisFleetStoreTests.until("both reach the server") {
                    members.allSatisfy { $0.store.status.isReachable && $0.store.status.hearsChanges }
                }
                try await Task.sleep(for: .milliseconds(100))
                try await look(path)
            }
            #expect(stale == 0 && foreign == 0, "\(stale) stale and \(foreign) foreign of \(looked) looks at \(kind)")
            if [.lru, .lfu, .random].contains(kind) { #expect(server.info("evicted_keys") ?? 0 > 0) }
            // What one stores the other finds: the store is not dark.
            try await RedisFleetStoreTests.until("\(kind): one finds what the other stores") {
                let path = "/new\(origin.asked.count)"
                let before = origin.asked.count
                _ = try await members[0].call(path, as: users[1])
                try await Task.sleep(for: .milliseconds(20))
                _ = try await members[1].call(path, as: users[1])
                return origin.asked.count == before + 1
            }
            for purge in [PurgeSelection.tag("t"), .keyPrefix([1]), .matching { _ in false }, .all] {
                try await members[0].store.purge(purge, now: StoreInstant(milliseconds: 0))
            }
            try await look("/page0")
            if kind == .acl {
                #expect(members.allSatisfy { $0.store.status.refusals == 0 }, "\(members[0].store.status)")
            }
            for member in members {
                #expect(member.store.status.isReachable)
                await member.store.close()
            }
        }

        /// Has the server forget what happens during `change` and no more.
        private static func rollBack(_ server: RedisServer, _ change: () async throws -> Void) async throws {
            var kept: [(String, String)] = []
            guard case .list(let keys)? = server.ask("KEYS", "holdfast:*") else { return }
            for case .text(let key) in keys {
                server.ask("COPY", key, "kept:" + key, "REPLACE")
                kept.append((key, "kept:" + key))
            }
            try await change()
            guard case .list(let later)? = server.ask("KEYS", "holdfast:*") else { return }
            for case .text(let key) in later { server.ask("DEL", key) }
            for (key, copy) in kept { server.ask("RENAME", copy, key) }
            // A crash takes the connections with it.
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        }

        // MARK: Single faults

        private static func key(_ text: String) -> StoreKey { StoreKey(Array(text.utf8)) }

        private static func pair(_ server: RedisServer, capacity: Int = 64 << 20) async throws -> [RedisStore] {
            var stores: [RedisStore] = []
            for _ in 0..<2 {
                let options = RedisConformanceTests.options("pair", capacity: capacity, memory: 0)
                stores.append(try await RedisStore.connect(server.address, options: options))
            }
            return stores
        }

        private static func keys(_ server: RedisServer, _ pattern: String) -> [String] {
            guard case .list(let found)? = server.ask("KEYS", pattern) else { return [] }
            return found.compactMap { if case .text(let key) = $0 { key } else { nil } }
        }

        private static let start = StoreInstant(milliseconds: 0)

        private static func writer(_ store: RedisStore, of key: String) async throws -> any EntryWriter {
            try await store.write(
                Self.key(key),
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk([1]), tags: ["t"]),
                expectedLength: nil,
                now: start
            )
        }

        @Test("A commit that is cancelled after it was sent leaves the entry with its body")
        func cancelledCommit() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let body = [UInt8](repeating: 1, count: BodyUpload.chunkLength)
            // From then on the server knows the script of the commit, so that asking for it by its digest is enough.
            try await RedisFleetStoreTests.write(stores[0], "c", [1])
            let writer = try await Self.writer(stores[0], of: "a")
            try await writer.append(ByteChunk(body))
            #expect(server.ask("CLIENT", "PAUSE", "600000", "WRITE") == .text("OK"))
            let commit = Task { try await writer.commit(nil, now: Self.start) }
            try await RedisFleetStoreTests.until("the server has the commit") { server.info("blocked_clients") == 1 }
            commit.cancel()
            await #expect(throws: StoreError.self) { try await commit.value }
            server.ask("CLIENT", "UNPAUSE")
            // A write waits until the cancelled one is cleared away.
            try await RedisFleetStoreTests.write(stores[0], "b", [1])
            #expect(try await RedisFleetStoreTests.read(stores[1], "a") == body)
            for store in stores { await store.close() }
        }

        @Test(
            "After a new epoch, writes or a purge remove what is left of the former one, and pinned entries too",
            arguments: ["snapshot", "index"],
            [true, false]
        )
        func formerEpoch(_ fault: String, _ purges: Bool) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let body = [UInt8](repeating: 1, count: 20_000)
            for number in 0..<20 { try await RedisFleetStoreTests.write(stores[0], "k\(number)", body) }
            let entry = try #require(try await stores[0].entries(for: Self.key("k0"), now: Self.start).first)
            #expect(try await stores[0].setPinned(true, entry))
            if fault == "snapshot" {
                // As if the server had restarted from a snapshot.
                server.ask("HINCRBY", "holdfast:2:{pair}:g", "n", "-1")
                #expect(try await RedisFleetStoreTests.read(stores[0], "k1") == nil)
                #expect(stores[0].statistics.bytesUsed > 18 * body.count, "what is still there is not counted")
            } else {
                server.ask("DEL", "holdfast:2:{pair}:age")
            }
            if purges { try await stores[0].purge(.all, now: Self.start) }
            for _ in 0..<(purges ? 1 : 3) { try await RedisFleetStoreTests.write(stores[0], "after", [1]) }
            #expect(Self.keys(server, "holdfast:2:{pair}:e:*").count == 1)
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty)
            #expect(stores[0].statistics.entryCount == 1)
            #expect(try await RedisFleetStoreTests.read(stores[1], "after") == [1])
            for store in stores { await store.close() }
        }

        @Test("A purge by predicate removes an entry that another process freshens meanwhile")
        func freshenedMeanwhile() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            try await RedisFleetStoreTests.write(stores[1], "a", [1])
            let asked = CountWatch()
            let isSelected: @Sendable (StoredEntry) -> Bool = { entry in
                asked.increment()
                if asked.count == 1 {
                    let name = SharedEntries.name(of: entry)
                    server.ask("HINCRBY", "holdfast:2:{pair}:e:\(name)", "n", "1")
                    server.ask("ZINCRBY", "holdfast:2:{pair}:k:\(SharedSpace.digest(of: entry.key))", "1", name)
                }
                return true
            }
            #expect(try await stores[0].purge(.matching(isSelected), now: Self.start) == 1)
            #expect(asked.count == 2)
            #expect(try await RedisFleetStoreTests.read(stores[1], "a") == nil)
            #expect(stores[0].statistics.entriesRemoved == 1)
            for store in stores { await store.close() }
        }

        @Test("A purge by predicate stops all writers, however many there are")
        func manyWriters() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            var writers: [any EntryWriter] = []
            for number in 0..<1_001 { writers.append(try await Self.writer(stores[1], of: "k\(number)")) }
            try await stores[0].purge(.matching { _ in true }, now: Self.start)
            for writer in [writers[0], writers[1_000]] {
                await #expect(throws: StoreError.self) { try await writer.commit(nil, now: Self.start) }
            }
            for store in stores { await store.close() }
        }

        @Test("An entry that has expired leaves the sets of its tags when it is removed from the index")
        func expiredTags() async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server)[0]
            for number in 0..<5 { try await Self.writer(store, of: "k\(number)").commit(nil, now: Self.start) }
            // As the server does an hour after they have become useless.
            for name in Self.keys(server, "holdfast:2:{pair}:e:*") { server.ask("DEL", name) }
            #expect(server.ask("SCARD", "holdfast:2:{pair}:t:t") == .number(5))
            for number in 0..<5 {
                #expect(try await store.entries(for: Self.key("k\(number)"), now: Self.start).isEmpty)
            }
            #expect(server.ask("EXISTS", "holdfast:2:{pair}:t:t", "holdfast:2:{pair}:tags") == .number(0))
            await store.close()
        }

        @Test("What a superseded writer goes on storing for its followers counts, and is removed when they are done")
        func supersededWriter() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let chunk = ByteChunk([UInt8](repeating: 1, count: BodyUpload.chunkLength))
            func write() async throws {
                let writer = try await Self.writer(stores[0], of: "a")
                try await writer.append(chunk)
                try await stores[1].invalidate(Self.key("a"))
                for _ in 0..<3 { try await writer.append(chunk) }
                #expect(stores[0].statistics.bytesUsed >= 4 * chunk.count)
                let body = writer.follow()
                await #expect(throws: StoreError.self) { try await writer.commit(nil, now: Self.start) }
                var count = 0
                while count < 4 * chunk.count {
                    let piece = try await body.read(from: count, upTo: 1 << 20)
                    try #require(!piece.isEmpty)
                    count += piece.count
                }
                #expect(count == 4 * chunk.count)
            }
            try await write()
            try await RedisFleetStoreTests.until("it is removed") {
                try await RedisFleetStoreTests.write(stores[0], "b", [1])
                return Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty
            }
            #expect(stores[0].statistics.bytesUsed < chunk.count)
            for store in stores { await store.close() }
        }

        @Test(
            "Followers read on when their entry is removed or replaced, and nothing is left when they are done",
            arguments: ["invalidate", "remove", "replace", "purge"],
            [0, 8 << 20]
        )
        func followedEntry(_ change: String, _ memory: Int) async throws {
            let server = try RedisServer()
            let options = RedisConformanceTests.options("pair", capacity: 64 << 20, memory: memory)
            let store = try await RedisStore.connect(server.address, options: options)
            let bytes = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 / 1_000) }
            func follow() async throws {
                let writer = try await Self.writer(store, of: "a")
                let body = writer.follow()
                try await writer.append(ByteChunk(bytes))
                let entry = try await writer.commit(nil, now: Self.start)
                #expect(try await body.read(from: 0, upTo: 10).array == Array(bytes[..<10]))
                switch change {
                case "invalidate": try await store.invalidate(Self.key("a"))
                case "remove": try await store.remove(entry)
                case "replace": try await RedisFleetStoreTests.write(store, "a", [1])
                default: try await store.purge(.all, now: Self.start)
                }
                #expect(try await body.whole() == bytes)
            }
            try await follow()
            try await RedisFleetStoreTests.until("the body is removed") {
                ["b:*", "r:*", "o:*", "bodies"].allSatisfy { Self.keys(server, "holdfast:2:{pair}:" + $0).isEmpty }
            }
            await store.close()
        }

        @Test("A body that nobody follows has no reader, and is removed with its entry")
        func unfollowedEntry() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let writer = try await Self.writer(stores[0], of: "a")
            try await writer.append(ByteChunk([UInt8](repeating: 1, count: 600_000)))
            try await writer.commit(nil, now: Self.start)
            #expect(Self.keys(server, "holdfast:2:{pair}:r:*").isEmpty)
            try await stores[1].invalidate(Self.key("a"))
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty)
            withExtendedLifetime(writer) {}
            for store in stores { await store.close() }
        }

        @Test("The body of an entry that the server has lost is removed", arguments: ["lookup", "replace", "purge"])
        func lostEntry(_ change: String) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            try await RedisFleetStoreTests.write(stores[0], "a", [UInt8](repeating: 1, count: 600_000))
            for name in Self.keys(server, "holdfast:2:{pair}:e:*") { server.ask("DEL", name) }
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").count == 3)
            switch change {
            case "lookup": #expect(try await stores[1].entries(for: Self.key("a"), now: Self.start).isEmpty)
            case "replace": try await RedisFleetStoreTests.write(stores[1], "a", [1])
            default: try await stores[1].purge(.all, now: Self.start)
            }
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty)
            #expect(server.ask("EXISTS", "holdfast:2:{pair}:bodies") == .number(0))
            for store in stores { await store.close() }
        }

        @Test("After two losses of the index, writes remove what is left from before the first one")
        func indexLostTwice() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let body = [UInt8](repeating: 1, count: 20_000)
            // More than one write removes.
            for number in 0..<40 { try await RedisFleetStoreTests.write(stores[0], "k\(number)", body) }
            for name in ["a", "b"] {
                server.ask("DEL", "holdfast:2:{pair}:age")
                try await RedisFleetStoreTests.write(stores[0], name, [1])
            }
            try await RedisFleetStoreTests.write(stores[0], "c", [1])
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty)
            #expect(Self.keys(server, "holdfast:2:{pair}:e:*").count == 2)
            for store in stores { await store.close() }
        }

        @Test(
            "A server that became a replica is left alone for a while, an open body can be read, and lookups are misses"
        )
        func becameReplica() async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server)[0]
            let bytes = [UInt8](repeating: 1, count: 600_000)
            try await RedisFleetStoreTests.write(store, "a", bytes)
            let entry = try #require(try await store.entries(for: Self.key("a"), now: Self.start).first)
            let body = try await store.body(of: entry)
            #expect(try await body.read(from: 0, upTo: 10).count == 10)
            server.ask("REPLICAOF", "127.0.0.1", "1")
            #expect(try await body.whole() == bytes)
            server.ask("CONFIG", "RESETSTAT")
            for number in 0..<1_000 {
                _ = try? await Self.writer(store, of: "k\(number)")
                _ = try await store.entries(for: Self.key("none"), now: Self.start)
            }
            // The test's own connections are among them.
            #expect(server.info("total_connections_received") ?? .max < 200)
            server.ask("REPLICAOF", "NO", "ONE")
            try await RedisFleetStoreTests.until("it is used again") {
                try? await RedisFleetStoreTests.write(store, "b", [1])
                return try await RedisFleetStoreTests.read(store, "b") == [1]
            }
            await store.close()
        }

        @Test("Without memory, a write that cannot reach the server is refused for the moment, not for its size")
        func unreachableWithoutMemory() async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server)[0]
            server.kill()
            for _ in 0..<2 {
                do throws(StoreError) {
                    _ = try await store.write(
                        Self.key("a"),
                        variant: StoreKey([]),
                        description: EntryDescription(metadata: ByteChunk([1])),
                        expectedLength: nil,
                        now: Self.start
                    )
                    Issue.record("a write was begun")
                } catch {
                    #expect(error.code == .temporarilyUnavailable)
                }
            }
            await store.close()
        }

        @Test("Of too many tags, the same ones are kept as in a store in memory")
        func manyTags() async throws {
            // The last two come in one order by their bytes and in the other one as texts.
            let tags = Set((0..<63).map { "a\($0)" }).union(["\u{100}", "\u{212B}"])
            let server = try RedisServer()
            let shared = try await Self.pair(server)[0]
            let stores: [any CacheStore] = [shared, MemoryStore(capacity: 1 << 20)]
            for store in stores {
                let writer = try await store.write(
                    Self.key("a"),
                    variant: StoreKey([]),
                    description: EntryDescription(metadata: ByteChunk([1]), tags: tags),
                    expectedLength: nil,
                    now: Self.start
                )
                try await writer.commit(nil, now: Self.start)
                let found = try await store.entries(for: Self.key("a"), now: Self.start)
                #expect(found.first?.description.tags == tags.subtracting(["\u{212B}"]))
                await store.close()
            }
        }

        @Test("A writer that the server no longer knows stores nothing more")
        func unknownWriter() async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server)[0]
            let chunk = ByteChunk([UInt8](repeating: 1, count: BodyUpload.chunkLength))
            let writer = try await Self.writer(store, of: "a")
            try await writer.append(chunk)
            server.ask("FLUSHALL")
            await #expect(throws: StoreError.self) { try await writer.append(chunk) }
            #expect(Self.keys(server, "holdfast:2:{pair}:b:*").isEmpty)
            await store.close()
        }

        @Test("A Unix socket works")
        func socket() async throws {
            let server = try RedisServer()
            let store = try await RedisStore.connect("unix://\(server.socketPath)")
            #expect(store.status.isReachable)
            try await RedisFleetStoreTests.write(store, "a", [1])
            #expect(try await RedisFleetStoreTests.read(store, "a") == [1])
            await store.close()
        }

        @Test(
            "If any key is evicted or has a wrong type, no invalidated or purged entry returns, and the store keeps working",
            arguments: ["evicted", "wrong"],
            ["key", "tag", "prefix", "matching", "all"]
        )
        func lostKeys(_ fault: String, _ change: String) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            func write(_ store: RedisStore, _ key: String, body: Int = 1) async throws {
                let writer = try await store.write(
                    Self.key(key),
                    variant: StoreKey([]),
                    description: EntryDescription(metadata: ByteChunk([1]), tags: ["t"]),
                    expectedLength: nil,
                    now: StoreInstant(milliseconds: 0)
                )
                try await writer.append(ByteChunk([UInt8](repeating: 1, count: body)))
                try await writer.commit(nil, now: StoreInstant(milliseconds: 0))
            }
            try await write(stores[0], "probe")
            let kinds = Self.keys(server, "holdfast:*").map { name in name.split(separator: ":")[3].description }
            for kind in Set(kinds).sorted() {
                for number in 0..<4 { try await write(stores[0], "k\(number)") }
                let late = try await stores[1].write(
                    Self.key("k0"),
                    variant: StoreKey([]),
                    description: EntryDescription(metadata: ByteChunk([1]), tags: ["t"]),
                    expectedLength: nil,
                    now: StoreInstant(milliseconds: 0)
                )
                for name in Self.keys(server, "holdfast:*") where name.split(separator: ":")[3] == kind {
                    server.ask("DEL", name)
                    if fault == "wrong" {
                        if kind == "e" { server.ask("SET", name, "x") } else { server.ask("SETBIT", name, "1", "1") }
                    }
                }
                switch change {
                case "key": for number in 0..<4 { try await stores[1].invalidate(Self.key("k\(number)")) }
                case "tag": try await stores[1].purge(.tag("t"), now: StoreInstant(milliseconds: 0))
                case "prefix": try await stores[1].purge(.keyPrefix([107]), now: StoreInstant(milliseconds: 0))
                case "matching": try await stores[1].purge(.matching { _ in true }, now: StoreInstant(milliseconds: 0))
                default: try await stores[1].purge(.all, now: StoreInstant(milliseconds: 0))
                }
                // What was begun before must not come after.
                _ = try? await late.commit(nil, now: StoreInstant(milliseconds: 0))
                for number in 0..<4 {
                    let found = try await stores[0].entries(
                        for: Self.key("k\(number)"),
                        now: StoreInstant(milliseconds: 0)
                    )
                    #expect(found.isEmpty, "\(kind) \(fault): k\(number) is still there after \(change)")
                }
                let page = try await stores[0].list(after: nil, limit: 100, now: StoreInstant(milliseconds: 0))
                #expect(
                    page.listed.allSatisfy { $0.entry.key.bytes.first != 107 },
                    "\(kind) \(fault): listed after \(change)"
                )
                for _ in 0..<2 { try? await write(stores[0], "after") }
                let found = try await stores[1].entries(for: Self.key("after"), now: StoreInstant(milliseconds: 0))
                #expect(found.count == 1, "\(kind) \(fault): nothing is stored after \(change)")
                #expect(stores.allSatisfy { $0.status.isReachable })
                #expect(stores[0].secret == stores[1].secret)
            }
            for store in stores { await store.close() }
        }

        @Test("A purge that the user has no permission for removes everything, and the store keeps working")
        func refusedPurge() async throws {
            let server = try RedisServer()
            server.ask(["ACL", "SETUSER", "cache"] + Kind.rules)
            var options = RedisOptions()
            (options.prefix, options.memory) = ("kinds", 0)
            let store = try await RedisStore.connect("redis://cache:open@127.0.0.1:\(server.port)", options: options)
            server.ask(["ACL", "SETUSER", "cache", "-rename"])
            let writer = try await store.write(
                Self.key("k"),
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk([1]), tags: ["t"]),
                expectedLength: nil,
                now: StoreInstant(milliseconds: 0)
            )
            try await writer.commit(nil, now: StoreInstant(milliseconds: 0))
            _ = try await store.purge(.tag("t"), now: StoreInstant(milliseconds: 0))
            #expect(try await RedisFleetStoreTests.read(store, "k") == nil)
            try await RedisFleetStoreTests.write(store, "after", [1])
            #expect(try await RedisFleetStoreTests.read(store, "after") == [1])
            #expect(store.status.isReachable && store.status.refusals > 0 && store.status.lastError != nil)
            await store.close()
        }

        @Test("Processes that start after FLUSHALL agree with the others on one secret")
        func secrets() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            server.ask("FLUSHALL")
            let third = try await Self.pair(server)
            try await RedisFleetStoreTests.write(third[0], "a", [1])
            for store in stores { _ = try await store.entries(for: Self.key("a"), now: StoreInstant(milliseconds: 0)) }
            #expect(stores[0].secret == third[0].secret && stores[1].secret == third[1].secret)
            for store in stores + third { await store.close() }
        }

        @Test("A change made under an outdated secret removes everything")
        func formerSecret() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            server.ask("FLUSHALL")
            let third = try await Self.pair(server)
            #expect(third[0].secret != stores[0].secret)
            try await RedisFleetStoreTests.write(third[0], "a", [1])
            try await stores[0].invalidate(Self.key("what a is called under the former secret"))
            #expect(try await RedisFleetStoreTests.read(third[0], "a") == nil)
            for store in stores + third { await store.close() }
        }

        @Test(
            "A response requested before another process invalidated it is not stored, however late it is written",
            arguments: ["key", "tag", "prefix", "matching", "all", "nothing"],
            ["whole", "evicted", "full"]
        )
        func askedForBefore(_ change: String, _ state: String) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            try await RedisFleetStoreTests.write(stores[0], "warm", [1])
            for number in 0..<3 { try await stores[0].invalidate(Self.key("other\(number)")) }
            // The epoch, which counts as a change as well, is some milliseconds old.
            try await Task.sleep(for: .milliseconds(30))
            let start = ContinuousClock.now
            if state == "full" { server.ask("CONFIG", "SET", "maxmemory", "1") }
            switch change {
            case "key": try await stores[0].invalidate(Self.key("k"))
            case "tag": try await stores[0].purge(.tag("t"), now: StoreInstant(milliseconds: 0))
            case "prefix": try await stores[0].purge(.keyPrefix([107]), now: StoreInstant(milliseconds: 0))
            case "matching": try await stores[0].purge(.matching { _ in true }, now: StoreInstant(milliseconds: 0))
            case "all": try await stores[0].purge(.all, now: StoreInstant(milliseconds: 0))
            default: break
            }
            if state == "full" { server.ask("CONFIG", "SET", "maxmemory", "0") }
            if state == "evicted" { server.ask("DEL", "holdfast:2:{pair}:changed") }
            func isStored(askedFor age: Int64) async throws -> Bool {
                var description = EntryDescription(metadata: ByteChunk([1]), tags: ["t"])
                description.requestedAt = StoreInstant(milliseconds: 1_000_000 - age)
                let writer = try await stores[1].write(
                    Self.key("k"),
                    variant: StoreKey([]),
                    description: description,
                    expectedLength: nil,
                    now: StoreInstant(milliseconds: 1_000_000)
                )
                do {
                    try await writer.commit(nil, now: StoreInstant(milliseconds: 1_000_000))
                } catch {
                    #expect(error.code == .superseded)
                    return false
                }
                return true
            }
            let isLost = change != "nothing" || state == "evicted"
            #expect(try await isStored(askedFor: Int64((.now - start) / .milliseconds(1)) + 1) == !isLost)
            // An answer that takes long on its way counts as asked for earlier.
            try await RedisFleetStoreTests.until("what is asked for afterwards is stored") {
                try await isStored(askedFor: 0)
            }
            #expect(stores.allSatisfy { $0.status.isReachable && $0.status.refusals == 0 }, "\(stores[0].status)")
            for store in stores { await store.close() }
        }

        @Test("A response in transfer while another process sends a POST is not stored")
        func underWay() async throws {
            let server = try RedisServer()
            let (gate, origin) = (LoopbackGate(), Origin())
            let slow = SlowOrigin(origin: origin, gate: gate)
            let first = try await Member(server.address, slow)
            let second = try await Member(server.address, origin)
            let look = Task { try await first.call("/slow") }
            try await RedisFleetStoreTests.until("the slow look-up is answered") { origin.asked.count == 1 }
            _ = try await second.call("/slow", method: "POST")
            gate.open()
            #expect(try await look.value[1] == "0")
            #expect(try await second.call("/slow")[1] == "1")
            #expect(try await first.call("/slow")[1] == "1")
            for member in [first, second] { await member.store.close() }
        }

        @Test(
            "A POST to one URL does not keep a response of another URL, in transfer in another process, from being stored"
        )
        func unrelatedPost() async throws {
            let server = try RedisServer()
            let (gate, origin) = (LoopbackGate(), Origin())
            let first = try await Member(server.address, SlowOrigin(origin: origin, gate: gate))
            let second = try await Member(server.address, origin)
            let look = Task { try await first.call("/slow") }
            try await RedisFleetStoreTests.until("it is answered") { origin.asked.count == 1 }
            try await Task.sleep(for: .milliseconds(30))
            _ = try await second.call("/other", method: "POST")
            gate.open()
            _ = try await look.value
            try await RedisFleetStoreTests.until("it was stored") {
                try await !second.store.list(after: nil, limit: 10, now: Self.start).listed.isEmpty
            }
            let before = origin.asked.count
            _ = try await second.call("/slow")
            #expect(origin.asked.count == before)
            for member in [first, second] { await member.store.close() }
        }

        @Test("A POST to one URL leaves another process's copies of others in memory")
        func unrelatedCopies() async throws {
            let server = try RedisServer()
            let origin = Origin()
            let members = [try await Member(server.address, origin), try await Member(server.address, origin)]
            try await RedisFleetStoreTests.until("both listen") { members.allSatisfy { $0.store.status.hearsChanges } }
            let above: @Sendable () -> Int = { members[1].store.tierStatistics?.upper.lookupsFound ?? 0 }
            try await RedisFleetStoreTests.until("a copy above") {
                let before = above()
                _ = try await members[1].call("/page")
                return above() > before
            }
            let heard = members[1].store.status.changesHeard
            _ = try await members[0].call("/other", method: "POST")
            try await RedisFleetStoreTests.until("it is heard") { members[1].store.status.changesHeard >= heard + 3 }
            try await RedisFleetStoreTests.until("the copy is used") {
                let before = above()
                _ = try await members[1].call("/page")
                return above() > before
            }
            #expect(members[1].store.tierStatistics?.upper.entryCount ?? 0 > 0)
            for member in members { await member.store.close() }
        }

        @Test("The keys of one URI stand together in the index, and no others among them")
        func groups() throws {
            let target = try TargetURI("http://a.example/x")
            let prefix = CacheKey.prefix(partition: "p", methodGroup: .post, target: target)
            let keys = ["1", "2"].map { digest in
                CacheKey(
                    partition: "p",
                    method: .post,
                    target: target,
                    contentType: "t",
                    contentDigest: digest
                )
            }
            let group = SharedSpace.group(ofPrefix: prefix)
            for key in keys {
                #expect(key.framed.starts(with: prefix))
                #expect(group.map { SharedSpace.digest(of: StoreKey(key.framed)).hasPrefix($0) } == true)
            }
            #expect(Set(keys.map { SharedSpace.digest(of: StoreKey($0.framed)) }).count == 2)
            #expect(SharedSpace.group(ofPrefix: Array(prefix.dropLast())) == nil)
            #expect(SharedSpace.group(ofPrefix: []) == nil && SharedSpace.group(ofPrefix: keys[0].framed) == nil)
            #expect(SharedSpace.digest(of: StoreKey([1])).count == 32)
        }

        @Test("What is owed to a server is made up for once, however many calls wait for it")
        func paidOnce() async throws {
            let server = try RedisServer()
            server.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "allchannels")
            let options = RedisConformanceTests.options("pair", capacity: 1 << 20, memory: 0)
            let store = try await RedisStore.connect("redis://u:p@127.0.0.1:\(server.port)", options: options)
            server.ask("ACL", "SETUSER", "u", "-eval", "-evalsha")
            for number in 0..<200 { try await store.invalidate(Self.key("k\(number)")) }
            let callers = (0..<100).map { _ in
                Task {
                    while !Task.isCancelled {
                        _ = try? await store.entries(for: Self.key("none"), now: Self.start)
                        try? await Task.sleep(for: .milliseconds(1))
                    }
                }
            }
            server.ask("CONFIG", "RESETSTAT")
            server.ask("ACL", "SETUSER", "u", "+@all")
            try await RedisFleetStoreTests.until("it is back") { store.status.isReachable }
            for caller in callers { caller.cancel() }
            guard case .text(let text)? = server.ask("INFO", "commandstats") else { return }
            let name = "cmdstat_unlink:calls="
            // Each invalidation unlinks once.
            let calls =
                text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name) }
                .flatMap { Int($0.dropFirst(name.count).prefix { $0 != "," }) } ?? 0
            #expect((190...260).contains(calls), "\(calls) invalidations for 200")
            await store.close()
        }

        @Test("A soft purge that could not reach the server is made up for before what is stored is used again")
        func softPurgeOwed() async throws {
            let server = try RedisServer()
            server.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "allchannels")
            let origin = Origin()
            let member = try await Member("redis://u:p@127.0.0.1:\(server.port)", origin)
            try await RedisFleetStoreTests.until("it is stored") {
                let before = origin.asked.count
                _ = try await member.call("/page")
                return origin.asked.count == before
            }
            server.ask("ACL", "SETUSER", "u", "-eval", "-evalsha")
            await #expect(throws: StoreError.self) { try await HTTPCache(store: member.store).markStale(.all) }
            server.ask("ACL", "SETUSER", "u", "+@all")
            try await RedisFleetStoreTests.until("it is back") { member.store.status.isReachable }
            let before = origin.asked.count
            _ = try await member.call("/page")
            #expect(origin.asked.count == before + 1)
            await member.store.close()
        }

        @Test("A server that does not know AUTH shows no password in the error")
        func unknownAuth() async throws {
            let server = try RedisServer("--rename-command", "AUTH", "LOGIN")
            do throws(StoreError) {
                let store = try await RedisStore.connect("redis://someone:hunter2@127.0.0.1:\(server.port)")
                await store.close()
                Issue.record("taken")
            } catch {
                #expect(error.code == .badConfiguration && !error.message.contains("hunter2"), "\(error.message)")
            }
        }

        /// Has answers to GET wait on their way.
        private struct SlowOrigin: Transport {
            let origin: Origin
            let gate: LoopbackGate

            func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                let response = try await origin.send(request, body: body, context: context)
                try await gate.opened()
                return response
            }
        }

        @Test("Reads of popular entries do not write")
        func readsDoNotWrite() async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server)[0]
            for number in 0..<20 { try await RedisFleetStoreTests.write(store, "k\(number)", [1]) }
            _ = try await store.entries(for: Self.key("k19"), now: StoreInstant(milliseconds: 0))
            server.ask("CONFIG", "RESETSTAT")
            for _ in 0..<50 { _ = try await store.entries(for: Self.key("k19"), now: StoreInstant(milliseconds: 0)) }
            guard case .text(let text)? = server.ask("INFO", "commandstats") else { return }
            let writes = ["incr", "zadd", "hset", "hincrby", "set", "del"].filter { text.contains("cmdstat_\($0):") }
            #expect(writes.isEmpty)
            await store.close()
        }

        @Test("A full Redis still answers lookups and purges, and replaces old entries with new ones")
        func full() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let body = [UInt8](repeating: 1, count: 40_000)
            for number in 0..<40 { try await RedisFleetStoreTests.write(stores[0], "k\(number)", body) }
            server.ask("CONFIG", "SET", "maxmemory", "\(server.info("used_memory") ?? 0)")
            #expect(server.ask("SET", "x", "y") == .failure("OOM command not allowed when used memory > 'maxmemory'."))
            #expect(try await RedisFleetStoreTests.read(stores[1], "k0") == body)
            try await stores[1].invalidate(Self.key("k0"))
            #expect(try await RedisFleetStoreTests.read(stores[0], "k0") == nil)
            for number in 0..<60 { try await RedisFleetStoreTests.write(stores[number % 2], "n\(number)", body) }
            #expect(try await RedisFleetStoreTests.read(stores[0], "n59") == body)
            server.ask("CONFIG", "SET", "maxmemory", "1")
            try await stores[1].purge(.all, now: StoreInstant(milliseconds: 0))
            #expect(try await RedisFleetStoreTests.read(stores[0], "n59") == nil)
            #expect(stores.allSatisfy { $0.status.isReachable })
            for store in stores { await store.close() }
        }

        @Test(
            "An entry takes no more of the server's memory than is counted for it",
            arguments: [0, 300, 2_000, 15_000, 20_000, 600_000]
        )
        func memory(_ length: Int) async throws {
            let server = try RedisServer()
            let store = try await Self.pair(server, capacity: 1 << 30)[0]
            try await RedisFleetStoreTests.write(store, "warm", [1])
            let count = length > 100_000 ? 60 : 1_500
            let (used, counted) = (server.info("used_memory") ?? 0, store.statistics.bytesUsed)
            for number in 0..<count {
                let writer = try await store.write(
                    Self.key("https://shop.example/articles/\(number)"),
                    variant: StoreKey(Array("accept-encoding: gzip".utf8)),
                    description: EntryDescription(
                        metadata: ByteChunk([UInt8](repeating: 65, count: 400)),
                        uselessAfter: StoreInstant(milliseconds: 9_000_000_000 + Int64(number)),
                        tags: ["t\(number % 10)"]
                    ),
                    expectedLength: nil,
                    now: StoreInstant(milliseconds: 0)
                )
                try await writer.append(ByteChunk([UInt8](repeating: UInt8(number % 250), count: length)))
                try await writer.commit(nil, now: StoreInstant(milliseconds: 0))
            }
            let taken = ((server.info("used_memory") ?? 0) - used) / count
            let said = (store.statistics.bytesUsed - counted) / count
            #expect(taken <= said && said * 4 < taken * 5, "takes \(taken), counted \(said)")
            await store.close()
        }

        @Test(
            "A server that needs a password, is a replica or cluster node, or lacks a permission is refused with the reason"
        )
        func refusals() async throws {
            func reason(_ address: String) async -> String {
                do throws(StoreError) {
                    let store = try await RedisStore.connect(
                        address,
                        options: RedisConformanceTests.options("pair", capacity: 1 << 20, memory: 0)
                    )
                    await store.close()
                    return "taken"
                } catch {
                    return "\(error.code): \(error.message)"
                }
            }
            let closed = try RedisServer("--requirepass", "open")
            #expect(await reason(closed.address).contains("password"))
            #expect(await reason("redis://:wrong@127.0.0.1:\(closed.port)").contains("rejected the user or password"))
            let replica = try RedisServer()
            replica.ask("REPLICAOF", "127.0.0.1", "1")
            #expect(await reason(replica.address).contains("replica"))
            replica.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
            #expect(await reason(replica.address).contains("replica"))
            let nodes = "/tmp/holdfast-\(UInt32.random(in: 0...9_999_999)).conf"
            defer { try? FileManager.default.removeItem(atPath: nodes) }
            let cluster = try RedisServer("--cluster-enabled", "yes", "--cluster-config-file", nodes)
            cluster.ask("CLUSTER", "ADDSLOTS", "0")
            #expect(await reason(cluster.address).contains("cluster"))
            let limited = try RedisServer()
            limited.ask("ACL", "SETUSER", "mute", "on", ">p", "~*", "+@all", "resetchannels")
            #expect(await reason("redis://mute:p@127.0.0.1:\(limited.port)").contains("channel"))
            limited.ask("ACL", "SETUSER", "other", "on", ">p", "~other:*", "+@all", "allchannels")
            #expect(await reason("redis://other:p@127.0.0.1:\(limited.port)").contains("ACL"))
            limited.ask(
                "ACL",
                "SETUSER",
                "least",
                "on",
                ">p",
                "~holdfast:2:{pair}:*",
                "&holdfast:2:{pair}:*",
                "-@all",
                "+@read",
                "+@write",
                "+@scripting",
                "+@pubsub",
                "+@connection",
                "+time",
                "-@dangerous"
            )
            #expect(await reason("redis://least:p@127.0.0.1:\(limited.port)") == "taken")
            #expect(await reason("rediss://127.0.0.1").contains("TLS"))
            #expect(
                await reason("redis://nobody:p@127.0.0.1:\(limited.port)").contains("rejected the user or password")
            )
            let wrongType = RedisReply.refusal(for: "WRONGTYPE Operation against a key holding the wrong kind of value")
            #expect(wrongType.code == .corrupt && wrongType.message.contains("another prefix"))
        }

        @Test(
            "After a purge of everything, an earlier state of the server shows nothing to anybody",
            arguments: [0, 1]
        )
        func rolledBackPurge(_ reader: Int) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            for name in ["a", "b"] { try await RedisFleetStoreTests.write(stores[0], name, [1]) }
            try await Self.rollBack(server) { try await stores[reader].purge(.all, now: Self.start) }
            try await RedisFleetStoreTests.until("both reach the server") {
                stores.allSatisfy { $0.status.isReachable }
            }
            #expect(try await RedisFleetStoreTests.read(stores[reader], "a") == nil)
            let third = try await Self.pair(server)
            for store in stores + third { #expect(try await RedisFleetStoreTests.read(store, "b") == nil) }
            try await RedisFleetStoreTests.write(stores[0], "c", [2])
            for store in stores + third {
                #expect(try await RedisFleetStoreTests.read(store, "c") == [2])
                await store.close()
            }
        }

        @Test("A user without any one of the commands that the page lists is refused, and empties no store")
        func missingCommands() async throws {
            let server = try RedisServer()
            let healthy = try await Self.pair(server)
            try await RedisFleetStoreTests.write(healthy[0], "a", [1])
            let commands = Kind.commands.split(whereSeparator: \.isWhitespace).map(String.init)
            // Those of the connection and those that come first are asked for elsewhere.
            for command in commands
            where !["auth", "select", "ping", "client|setname", "eval", "subscribe"].contains(command) {
                server.ask(["ACL", "SETUSER", "one", "reset"])
                server.ask(
                    ["ACL", "SETUSER", "one", "on", ">p", "~*", "allchannels", "-@all"]
                        + commands.filter { $0 != command }.map { "+" + $0 }
                )
                let options = RedisConformanceTests.options("pair", capacity: 1 << 20, memory: 0)
                let error = await #expect(throws: StoreError.self, "\(command)") {
                    try await RedisStore.connect("redis://one:p@127.0.0.1:\(server.port)", options: options).close()
                }
                #expect(error?.code == .badConfiguration, "\(command): \(String(describing: error))")
            }
            #expect(try await RedisFleetStoreTests.read(healthy[1], "a") == [1])
            for store in healthy { await store.close() }
        }

        @Test("A revoked permission shows in the status, blocks nothing, and is used again once granted")
        func lostRight() async throws {
            let server = try RedisServer()
            server.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "allchannels")
            let options = RedisConformanceTests.options("pair", capacity: 1 << 20, memory: 0)
            let store = try await RedisStore.connect("redis://u:p@127.0.0.1:\(server.port)", options: options)
            let other = try await RedisStore.connect(server.address, options: options)
            for name in ["a", "b"] { try await RedisFleetStoreTests.write(store, name, [1]) }
            server.ask("ACL", "SETUSER", "u", "resetchannels")
            try await store.invalidate(Self.key("a"))
            #expect(try await RedisFleetStoreTests.read(other, "a") == nil)
            _ = try await RedisFleetStoreTests.read(store, "b")
            #expect(store.status.isReachable)
            #expect(store.status.lastError?.contains("channel") == true, "\(store.status)")
            #expect(store.status.refusals >= 1)
            server.ask("ACL", "SETUSER", "u", "allchannels")
            try await RedisFleetStoreTests.write(store, "c", [1])
            #expect(try await RedisFleetStoreTests.read(other, "c") == [1])
            for store in [store, other] { await store.close() }
        }

        @Test("A server that replies one byte at a time costs one timeout, however long its reply")
        func trickle() async throws {
            let server = try TricklingServer()
            var options = RedisClient.Options()
            options.commandTimeout = .milliseconds(500)
            let client = RedisClient(try RedisAddress("redis://127.0.0.1:\(server.port)"), options: options)
            let clock = ContinuousClock()
            let start = clock.now
            await #expect(throws: StoreError.self) { try await client.send(RedisCommand("GET", "a")) }
            #expect(clock.now - start < .seconds(2))
            client.close()
            server.close()
        }

        @Test("Under a new secret, a user's responses are found and invalidated by all processes under one name")
        func namesUnderNewSecret() async throws {
            let server = try RedisServer()
            let (origin, alice) = (Origin(), "Bearer alice")
            let first = try await Member(server.address, origin)
            _ = try await first.call("/page", as: alice)
            server.ask("FLUSHALL")
            // It makes another secret, which the first process adopts with the next reply.
            let second = try await Member(server.address, origin)
            try await RedisFleetStoreTests.until("one secret") {
                _ = try await first.store.entries(for: Self.key("any"), now: Self.start)
                return first.store.secret == second.store.secret
            }
            try await Task.sleep(for: .milliseconds(50))
            _ = try await first.call("/page", as: alice)
            try await Task.sleep(for: .milliseconds(50))
            let asked = origin.asked.count
            _ = try await second.call("/page", as: alice)
            #expect(origin.asked.count == asked, "the second process does not find what the first stored")
            _ = try await second.call("/page", as: alice, method: "POST")
            try await Task.sleep(for: .milliseconds(50))
            let words = try await first.call("/page", as: alice)
            #expect(words[words.count - 2] == "1")
            for member in [first, second] { await member.store.close() }
        }

        @Test(
            "What a cancelled task invalidates or purges is gone for the other processes too",
            arguments: ["key", "tag", "all"]
        )
        func cancelledChange(_ change: String) async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            try await Self.writer(stores[0], of: "k").commit(nil, now: Self.start)
            let store = stores[0]
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                switch change {
                case "key": try await store.invalidate(Self.key("k"))
                case "tag": try await store.purge(.tag("t"), now: Self.start)
                default: try await store.purge(.all, now: Self.start)
                }
            }
            _ = await task.result
            // The first process asks the server for nothing more.
            try await RedisFleetStoreTests.until("the other one finds nothing") {
                try await stores[1].entries(for: Self.key("k"), now: Self.start).isEmpty
            }
            for store in stores { await store.close() }
        }

        @Test("What was invalidated while the server refused commands is not committed when it takes them again")
        func commitAfterDebt() async throws {
            let server = try RedisServer()
            server.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "allchannels")
            let options = RedisConformanceTests.options("pair", capacity: 1 << 20, memory: 0)
            let store = try await RedisStore.connect("redis://u:p@127.0.0.1:\(server.port)", options: options)
            let writer = try await Self.writer(store, of: "k")
            server.ask("ACL", "SETUSER", "u", "-eval", "-evalsha")
            try await store.invalidate(Self.key("k"))
            // By then the recovery tries once a second only.
            try await Task.sleep(for: .seconds(3))
            server.ask("ACL", "SETUSER", "u", "+@all")
            await #expect(throws: StoreError.self) { try await writer.commit(nil, now: Self.start) }
            await store.close()
        }

        @Test("A freshening that the server did not make is not reported as one of an entry that is gone")
        func freshenedNot() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let entry = try await Self.writer(stores[0], of: "k").commit(nil, now: Self.start)
            server.kill()
            let changed = EntryDescription(metadata: ByteChunk([2]))
            await #expect(throws: StoreError.self) {
                try await stores[0].replaceDescription(of: entry, with: changed, now: Self.start)
            }
            for store in stores { await store.close() }
        }

        @Test("A pinned entry that outgrows the room for pins when it is freshened loses its pin")
        func outgrownPin() async throws {
            let server = try RedisServer()
            let (key, variant) = (Self.key("k"), StoreKey([]))
            let small = EntryDescription(metadata: ByteChunk([1]))
            let size = try #require(EntryWords.size(key, variant: variant, description: small, body: 0))
            let stores = try await Self.pair(server, capacity: 2 * size)
            let entry = try await stores[0].put(
                key,
                variant: variant,
                description: small,
                body: ByteChunk(),
                now: Self.start
            )
            #expect(try await stores[0].setPinned(true, entry))
            let longer = EntryDescription(metadata: ByteChunk([UInt8](repeating: 1, count: 100)))
            let fresh = try await stores[0].replaceDescription(of: entry, with: longer, now: Self.start)
            #expect(fresh?.isPinned == false)
            for store in stores { await store.close() }
        }

        private struct Validating: Transport {
            let gate: LoopbackGate
            let conditions = CountWatch()

            func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                let fields: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"v\""]
                guard request.value(forHTTPHeaderField: "If-None-Match") != nil else {
                    return Response(status: .ok, fields: fields, body: ResponseBody(ByteChunk(copying: "one".utf8)))
                }
                conditions.increment()
                try await gate.opened()
                return Response(status: .notModified, fields: fields, body: ResponseBody())
            }
        }

        @Test("A 304 that one process requested before another one marked the response does not remove the mark")
        func markedMeanwhile() async throws {
            let server = try RedisServer()
            let stores = try await Self.pair(server)
            let origin = Validating(gate: LoopbackGate())
            let caches = stores.map { HTTPCache(store: $0) }
            let pipelines = caches.map { Pipeline(transport: origin, cache: $0) }
            let request = URLRequest(url: try #require(URL(string: "http://origin.example/marked")))
            _ = try await pipelines[0].send(request).body.collect()
            try await RedisFleetStoreTests.until("it is stored") {
                try await pipelines[1].send(request).source == .fresh
            }
            var options = CallOptions()
            options.cache = .revalidate
            let (asking, pipeline) = (options, pipelines[0])
            let call = Task { try await pipeline.send(request, options: asking).body.collect() }
            try await RedisFleetStoreTests.until("the condition is sent") { origin.conditions.count == 1 }
            try await Task.sleep(for: .milliseconds(30))
            #expect(try await caches[1].markStale(.all) == 1)
            origin.gate.open()
            _ = try await call.value
            #expect(try await pipelines[1].send(request).source != .fresh)
            for store in stores { await store.close() }
        }
    }

    /// Answers one byte each 200 milliseconds, of an answer that takes long.
    private final class TricklingServer: Sendable {
        let port: Int
        private let process: ChildProcess

        init() throws {
            port = Int.random(in: 20_000..<60_000)
            let script = """
                import socket, time
                s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", \(port))); s.listen(8); print("up", flush=True)
                while True:
                    c, _ = s.accept()
                    try:
                        c.recv(4096)
                        for byte in b"+OK\\r\\n$40\\r\\n" + b"x" * 40:
                            c.send(bytes([byte])); time.sleep(0.2)
                    except OSError: pass
                """
            let pipe = Pipe()
            process = try ChildProcess("python3", ["-c", script], output: .pipe(pipe), errors: .discarded)
            _ = pipe.fileHandleForReading.availableData
        }

        func close() { process.signal(SIGTERM) }
    }
#endif
