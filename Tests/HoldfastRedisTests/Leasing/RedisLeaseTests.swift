// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastRedis

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(
        "Leases in a Redis",
        .enabled(if: RedisServer.program != nil, "redis-server is not installed"),
        .timeLimit(.minutes(20))
    )
    struct RedisLeaseTests {
        private static func subject(_ redis: RedisServer, hearsMessages: Bool = true) -> LeaseConformance.Subject {
            LeaseConformance.Subject(
                one: RedisLeases(SocketLeaseServer(redis, hearsMessages: hearsMessages), prefix: "t:"),
                other: RedisLeases(SocketLeaseServer(redis, hearsMessages: hearsMessages), prefix: "t:"),
                elapse: { try? await Task.sleep(for: $0) }
            )
        }

        @Test("Two processes at one server keep every law, with notifications or by polling", arguments: [true, false])
        func laws(_ hearsMessages: Bool) async throws {
            let redis = try RedisServer()
            let subject = Self.subject(redis, hearsMessages: hearsMessages)
            for (number, law) in LeaseConformance.laws.enumerated() {
                let findings = await law.findings(of: subject, key: StoreKey([UInt8(number)]))
                #expect(findings.isEmpty, "\(law): \(findings)")
            }
        }

        @Test("The end of a lease is learned from its message, however long the next poll would take")
        func message() async throws {
            let redis = try RedisServer()
            let clock = ManualClock()
            let server = SocketLeaseServer(redis)
            let one = RedisLeases(SocketLeaseServer(redis), prefix: "t:", clock: clock)
            let other = RedisLeases(server, prefix: "t:", clock: clock)
            let (key, variant) = (StoreKey([1]), StoreKey([]))
            guard case .granted(let lease) = await one.lease(key, variant: variant, for: .seconds(600)),
                case .held(let seen) = await other.lease(key, variant: variant, for: .seconds(600))
            else {
                Issue.record("not granted, or not held")
                return
            }
            async let told = seen.end()
            try await server.subscribed.wait(for: 1)
            // By this clock the time for a look never comes.
            while other.waiting == 0 { await Task.yield() }
            lease.end(.notShareable)
            #expect(await told == .notShareable)
            #expect(other.waiting == 0)
        }

        /// Cannot be reached for a while.
        private final class LostServer: LeaseServer {
            let isLost = Atomic(false)
            let refused = CountWatch()
            private let server: SocketLeaseServer

            init(_ server: SocketLeaseServer) { self.server = server }

            func evaluate(_ script: RedisScript, keys: [String], arguments: [String]) async -> String? {
                guard isLost.load(ordering: .relaxed) else {
                    return await server.evaluate(script, keys: keys, arguments: arguments)
                }
                refused.increment()
                return nil
            }

            func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async {
                await server.subscribe(channel, receive: receive)
            }
        }

        @Test("A lease that ends while the server is lost is ended as soon as it is back")
        func endedLate() async throws {
            let redis = try RedisServer()
            let (clock, server) = (ManualClock(), LostServer(SocketLeaseServer(redis)))
            let leases = RedisLeases(server, prefix: "t:", clock: clock)
            let (key, variant) = (StoreKey([1]), StoreKey([]))
            guard case .granted(let lease) = await leases.lease(key, variant: variant, for: .seconds(600)) else {
                Issue.record("not granted")
                return
            }
            server.isLost.store(true, ordering: .relaxed)
            lease.end(.stored)
            try await server.refused.wait(for: 1)
            server.isLost.store(false, ordering: .relaxed)
            for _ in 0..<1_000 {
                clock.advance(by: .milliseconds(250))
                if case .granted = await leases.lease(key, variant: variant, for: .seconds(600)) { return }
                await Task.yield()
            }
            Issue.record("the lease was never ended")
        }

        @Test("A killed server ends a wait and grants nothing")
        func killed() async throws {
            let redis = try RedisServer()
            let subject = Self.subject(redis)
            let (key, variant) = (StoreKey([1]), StoreKey([]))
            guard case .granted(let lease) = await subject.one.lease(key, variant: variant, for: .seconds(600)),
                case .held(let seen) = await subject.other.lease(key, variant: variant, for: .seconds(600))
            else {
                Issue.record("not granted, or not held")
                return
            }
            async let told = seen.end()
            redis.kill()
            #expect(await told == nil)
            #expect(await !lease.renew(for: .seconds(5)))
            lease.end(.stored)
            if case .unavailable = await subject.other.lease(key, variant: variant, for: .seconds(5)) {
            } else {
                Issue.record("a server that is gone granted a lease")
            }
        }

        @Test("A caller that leaves while it asks leaves no lease behind")
        func leaving() async throws {
            let redis = try RedisServer()
            let subject = Self.subject(redis)
            for number in 0..<20 as Range<UInt8> {
                let (one, key) = (subject.one, StoreKey([number]))
                let asking = Task {
                    if case .granted(let lease) = await one.lease(key, variant: StoreKey([]), for: .seconds(600)) {
                        lease.end(.failed)
                    }
                }
                if number % 2 == 0 { await Task.yield() }
                asking.cancel()
                await asking.value
                // The end of a lease is on its way: anyone who comes meanwhile sees it.
                while true {
                    switch await subject.other.lease(key, variant: StoreKey([]), for: .seconds(600)) {
                    case .granted(let lease): lease.end(.stored)
                    case .held(let seen):
                        _ = await seen.end()
                        continue
                    case .unavailable: Issue.record("unavailable")
                    }
                    break
                }
            }
        }

        @Test(
            "An unexpected reply of the server is not a lease",
            arguments: ["", "held", "x y", "granted"]
        )
        func nonsense(_ answer: String) async {
            struct Babbling: LeaseServer {
                let answer: String
                func evaluate(_ script: RedisScript, keys: [String], arguments: [String]) async -> String? { answer }
                func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async {}
            }
            let leases = RedisLeases(Babbling(answer: answer), prefix: "t:")
            if case .unavailable = await leases.lease(StoreKey([1]), variant: StoreKey([]), for: .seconds(5)) {
            } else {
                Issue.record("taken for a lease")
            }
            let board = LeaseBoard()
            for message in ["", " ", "a", "a b", "a stored", "a stored b"] { board.receive(message) }
            #expect(board.count == 0)
        }

        @Test("An end that is reported before its wait has begun is told to it, and to nobody once all waits are over")
        func endBeforeWait() async {
            let board = LeaseBoard()
            /// The outcome that is known without waiting.
            func known() async -> LeaseOutcome? {
                await Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return await board.outcome(of: "a")
                }.value
            }
            board.expect("a")
            board.expect("a")
            board.receive("a stored")
            #expect(await known() == .stored)
            board.forget("a")
            #expect(await known() == .stored)
            board.forget("a")
            #expect(await known() == nil)
            board.receive("a stored")
            #expect(await known() == nil)
        }
    }
#endif
