// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import HoldfastRedis

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(
        "RedisStore in a fleet",
        .enabled(if: RedisServer.program != nil, "redis-server is not installed"),
        .timeLimit(.minutes(20))
    )
    struct RedisFleetStoreTests {
        private static func pair(
            _ server: RedisServer,
            timeout: Duration = .seconds(60)
        ) async throws -> (RedisStore, RedisStore) {
            let prefix = "fleet-\(UInt64.random(in: 0...UInt64.max))"
            var options = RedisConformanceTests.options(prefix, capacity: 16 << 20, memory: 4 << 20)
            (options.connectTimeout, options.commandTimeout) = (timeout, timeout)
            let first = try await RedisStore.connect(server.address, options: options)
            let second = try await RedisStore.connect(server.address, options: options)
            return (first, second)
        }

        /// Waits, in real time and for two minutes at most, for what another process or thread does.
        static func until(_ what: String, _ condition: () async throws -> Bool) async throws {
            for _ in 0..<1_200 {
                if try await condition() { return }
                try await Task.sleep(for: .milliseconds(100))
            }
            Issue.record("never came: \(what)")
        }

        static func write(_ store: RedisStore, _ key: String, _ body: [UInt8]) async throws {
            let writer = try await store.write(
                StoreKey(Array(key.utf8)),
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk(copying: "m".utf8)),
                expectedLength: nil,
                now: StoreInstant(milliseconds: 0)
            )
            try await writer.append(ByteChunk(body))
            try await writer.commit(nil, now: StoreInstant(milliseconds: 0))
        }

        static func read(_ store: RedisStore, _ key: String) async throws -> [UInt8]? {
            let found = try await store.entries(for: StoreKey(Array(key.utf8)), now: StoreInstant(milliseconds: 0))
            guard let entry = found.first, let body = try? await store.body(of: entry) else { return nil }
            var bytes: [UInt8] = []
            while bytes.count < entry.bodyLength {
                let piece = try await body.read(from: bytes.count, upTo: 300_000)
                if piece.isEmpty { break }
                piece.append(to: &bytes)
            }
            #expect(bytes.count == entry.bodyLength)
            return bytes
        }

        @Test("What one process writes the other finds, and a change in one reaches the other's memory")
        func copies() async throws {
            let (first, second) = try await Self.pair(RedisServer.one())
            try await Self.until("both listen") { first.status.hearsChanges && second.status.hearsChanges }
            #expect(first.secret == second.secret)
            try await Self.write(first, "a", [1])
            try await Self.until("a copy above") {
                let bytes = try await Self.read(second, "a")
                #expect(bytes == [1])
                return second.tierStatistics?.upper.lookupsFound ?? 0 > 0
            }
            try await Self.write(first, "a", [2])
            try await Self.until("the change") { try await Self.read(second, "a") == [2] }
            try await first.invalidate(StoreKey(Array("a".utf8)))
            try await Self.until("the invalidation") { try await Self.read(second, "a") == nil }
            try await Self.write(second, "b", [3])
            #expect(try await Self.read(second, "b") == [3])
            try await first.purge(.all, now: StoreInstant(milliseconds: 0))
            try await Self.until("the purge") { try await Self.read(second, "b") == nil }
            #expect(second.status.changesHeard >= 3)
            await first.close()
            await second.close()
        }

        @Test("If two processes write at once, one version is stored whole, and never a mixture", arguments: [1, 2, 3])
        func races(_ seed: UInt64) async throws {
            let (first, second) = try await Self.pair(RedisServer.one())
            let stores = [first, second]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<6 {
                    group.addTask {
                        var generator = SeededGenerator(seed: seed &* 31 &+ UInt64(task))
                        let store = stores[task % 2]
                        for _ in 0..<15 {
                            switch Int.random(in: 0..<6, using: &generator) {
                            case 0...2:
                                let byte = UInt8.random(in: 0...255, using: &generator)
                                let length = [10, 20_000, 600_000].randomElement(using: &generator) ?? 0
                                do {
                                    try await Self.write(store, "k", [UInt8](repeating: byte, count: length))
                                } catch let error as StoreError where error.code == .superseded {
                                    continue
                                }
                            case 3: try await store.invalidate(StoreKey(Array("k".utf8)))
                            default:
                                let bytes = try await Self.read(store, "k") ?? []
                                #expect(Set(bytes).count <= 1, "two versions in one body, seed \(seed)")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            await first.close()
            await second.close()
        }

        @Test(
            "If Redis is killed and comes back, no call fails: memory is used meanwhile, and then the store is shared again"
        )
        func killed() async throws {
            let server = try RedisServer()
            let (first, second) = try await Self.pair(server, timeout: .seconds(5))
            let asked = CountWatch()
            let transport = CountingOrigin(asked: asked)
            let pipelines = [first, second].map { store in
                var configuration = PipelineConfiguration()
                configuration.attemptTimeout = nil
                return Pipeline(transport: transport, cache: HTTPCache(store: store), configuration: configuration)
            }
            @Sendable func call(_ number: Int, _ path: String) async throws -> StatusCode {
                let url = try #require(URL(string: "http://origin.example/\(path)"))
                let response = try await pipelines[number % 2].send(URLRequest(url: url))
                _ = try await response.body.collect()
                return response.status
            }
            #expect(try await call(0, "shared") == .ok)
            try await Self.until("it is stored") { try await Self.count(first) == 1 }
            #expect(try await call(1, "shared") == .ok)
            #expect(asked.count == 1, "the second process did not find what the first stored")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let status = try await call(number, "load\(number % 20)")
                        #expect(status == .ok)
                    }
                    if number == 100 { server.kill() }
                }
                try await group.waitForAll()
            }
            #expect(try await call(0, "alone") == .ok)
            #expect(!first.status.isReachable)
            try await Self.until("memory stands in") {
                let before = asked.count
                _ = try await call(0, "alone")
                return asked.count == before
            }
            try await first.invalidate(StoreKey([1, 2, 3]))
            try server.restart()
            try await Self.until("the server is used again") {
                _ = try await call(0, "again")
                _ = try await call(1, "again")
                return first.status.isReachable && second.status.isReachable
            }
            try await Self.until("what one has fetched the other finds") {
                let (start, path) = (asked.count, "new\(asked.count)")
                _ = try await call(0, path)
                _ = try await call(1, path)
                return asked.count == start + 1
            }
            await first.close()
            await second.close()
        }

        private static func count(_ store: RedisStore) async throws -> Int {
            try await store.list(after: nil, limit: 100, now: StoreInstant(milliseconds: 0)).listed.count
        }

        @Test("If Redis hangs, one call costs a timeout, later ones nothing, and none fails")
        func frozen() async throws {
            let server = try RedisServer()
            let (first, second) = try await Self.pair(server, timeout: .milliseconds(300))
            server.freeze()
            for _ in 0..<50 { _ = try await first.entries(for: StoreKey([9]), now: StoreInstant(milliseconds: 0)) }
            #expect(!first.status.isReachable)
            #expect(first.status.losses >= 1)
            server.thaw()
            try await Self.until("it is back") {
                _ = try await first.entries(for: StoreKey([9]), now: StoreInstant(milliseconds: 0))
                return first.status.isReachable
            }
            await first.close()
            await second.close()
        }

        @Test("A server that is not up yet is no error; one that refuses the connection setup is")
        func opening() async throws {
            let server = try RedisServer()
            server.kill()
            let store = try await RedisStore.connect(server.address)
            #expect(try await Self.read(store, "a") == nil)
            #expect(!store.status.isReachable)
            await store.close()
            try server.restart()
            var options = RedisOptions()
            options.commandTimeout = .seconds(60)
            do throws(StoreError) {
                _ = try await RedisStore.connect("redis://u:wrong@127.0.0.1:\(server.port)", options: options)
                Issue.record("a wrong password was taken")
            } catch {
                #expect(error.code == .badConfiguration)
            }
        }

        @Test("What stood in for a lost server is not used any more once it is back")
        func standInsGo() async throws {
            let server = try RedisServer()
            server.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "allchannels")
            let options = RedisConformanceTests.options("back", capacity: 16 << 20, memory: 4 << 20)
            let first = try await RedisStore.connect("redis://u:p@127.0.0.1:\(server.port)", options: options)
            let second = try await RedisStore.connect(server.address, options: options)
            try await Self.until("it listens") { first.status.hearsChanges }
            server.ask("ACL", "SETUSER", "u", "-eval", "-evalsha")
            try await Self.write(first, "k", [1])
            try await second.invalidate(StoreKey(Array("k".utf8)))
            try await Self.until("the message") { first.status.changesHeard > 0 }
            try await Self.until("a copy above") {
                _ = try await Self.read(first, "k")
                return first.tierStatistics?.upper.lookupsFound ?? 0 > 0
            }
            server.ask("ACL", "SETUSER", "u", "+@all")
            try await Self.until("the server is back") { first.status.isReachable }
            try await Task.sleep(for: .milliseconds(200))
            #expect(try await Self.read(first, "k") == nil)
            await first.close()
            await second.close()
        }

        @Test("When the server has become a replica, changes are heard from the one that took its place")
        func movedAway() async throws {
            let (former, next) = (try RedisServer(), try RedisServer())
            let link = "/tmp/holdfast-moved-\(UInt32.random(in: 0...9_999_999)).sock"
            let files = FileManager.default
            defer { try? files.removeItem(atPath: link) }
            try files.createSymbolicLink(atPath: link, withDestinationPath: former.socketPath)
            let options = RedisConformanceTests.options("moved", capacity: 16 << 20, memory: 4 << 20)
            let first = try await RedisStore.connect("unix://\(link)", options: options)
            let second = try await RedisStore.connect("unix://\(link)", options: options)
            try await Self.until("both listen") { first.status.hearsChanges && second.status.hearsChanges }
            try files.removeItem(atPath: link)
            try files.createSymbolicLink(atPath: link, withDestinationPath: next.socketPath)
            former.ask("REPLICAOF", "127.0.0.1", "1")
            try await Self.until("both use the next one") {
                try? await Self.write(first, "probe", [0])
                try? await Self.write(second, "a", [1])
                return try await Self.read(first, "a") == [1] && second.status.isReachable
            }
            try await Self.until("a copy above") {
                let before = first.tierStatistics?.upper.lookupsFound ?? 0
                _ = try await Self.read(first, "a")
                return first.tierStatistics?.upper.lookupsFound ?? 0 > before
            }
            try await Self.write(second, "a", [2])
            try await Self.until("the change") { try await Self.read(first, "a") == [2] }
            await first.close()
            await second.close()
        }

        @Test("A server that refuses changes is not back because it answers a lookup: what stands in for it stays")
        func refusesChanges() async throws {
            let server = try RedisServer()
            let options = RedisConformanceTests.options("deny", capacity: 16 << 20, memory: 4 << 20)
            let store = try await RedisStore.connect(server.address, options: options)
            try await Self.write(store, "warm", [1])
            server.ask("CONFIG", "SET", "min-replicas-to-write", "1")
            for number in 0..<5 { try await Self.write(store, "k\(number)", [UInt8(number)]) }
            for number in 0..<5 { #expect(try await Self.read(store, "k\(number)") == [UInt8(number)]) }
            #expect(store.status.losses == 1)
            server.ask("CONFIG", "SET", "min-replicas-to-write", "0")
            try await Self.until("it is back") { store.status.isReachable }
            await store.close()
        }

        @Test("A removal reaches copies of an entry that the server itself has evicted")
        func removedAfterEviction() async throws {
            let server = try RedisServer()
            let (first, second) = try await Self.pair(server)
            try await Self.until("both listen") { first.status.hearsChanges && second.status.hearsChanges }
            try await Self.write(first, "a", [1])
            let key = StoreKey(Array("a".utf8))
            let entry = try #require(try await first.entries(for: key, now: StoreInstant(milliseconds: 0)).first)
            try await Self.until("a copy above") {
                _ = try await Self.read(second, "a")
                return second.tierStatistics?.upper.lookupsFound ?? 0 > 0
            }
            guard case .list(let names)? = server.ask("KEYS", "holdfast:*:e:*") else { return }
            for case .text(let name) in names { server.ask("DEL", name) }
            try await first.remove(entry)
            try await Self.until("the copy is gone") { try await Self.read(second, "a") == nil }
            await first.close()
            await second.close()
        }

        @Test("A list whose server is lost ends with an error, and not with what memory holds")
        func lostAmidList() async throws {
            let server = try RedisServer()
            let (first, second) = try await Self.pair(server, timeout: .seconds(5))
            let now = StoreInstant(milliseconds: 0)
            for key in ["a", "b", "c"] { try await Self.write(first, key, [1]) }
            let page = try await first.list(after: nil, limit: 1, now: now)
            let rest = try await first.list(after: page.next, limit: 10, now: now)
            #expect(page.listed.count == 1 && rest.listed.count == 2)
            server.kill()
            await #expect(throws: StoreError.self) { try await first.list(after: page.next, limit: 10, now: now) }
            for key in ["x", "y"] { try await Self.write(first, key, [2]) }
            let held = try await first.list(after: nil, limit: 1, now: now)
            let heldRest = try await first.list(after: held.next, limit: 10, now: now)
            #expect(Set((held.listed + heldRest.listed).map(\.entry.key.bytes)) == [Array("x".utf8), Array("y".utf8)])
            await first.close()
            await second.close()
        }
    }

    private struct CountingOrigin: Transport {
        let asked: CountWatch

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            asked.increment()
            return Response(
                status: .ok,
                fields: ["Cache-Control": "max-age=600"],
                body: ResponseBody(ByteChunk(copying: "one".utf8))
            )
        }
    }
#endif
