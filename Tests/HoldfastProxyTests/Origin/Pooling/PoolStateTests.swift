// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastTesting
    import NIOCore
    import Testing

    @testable import HoldfastProxy

    @Suite("The connection pool's state")
    struct PoolStateTests {
        private static let a = OriginKey(isSecure: false, host: "a", port: 80)
        private static let b = OriginKey(isSecure: false, host: "b", port: 80)
        private final class Loop {}
        private let loops = [Loop(), Loop()]
        private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

        private func loop(_ number: Int) -> PoolState.Loop { ObjectIdentifier(loops[number]) }

        private func limits(perOrigin: Int = 4, total: Int = 6, idle: Int = 4, waiting: Int = 100) -> PoolState.Limits {
            PoolState.Limits(
                perOrigin: perOrigin,
                total: total,
                idlePerOrigin: idle,
                idleTotal: idle,
                idleTime: .seconds(4),
                waiting: waiting
            )
        }

        private func take(
            _ state: inout PoolState,
            _ key: OriginKey = a,
            on loop: Int? = nil,
            wantsNew: Bool = false,
            after seconds: Int64 = 0
        ) -> (answer: PoolState.Answer, work: PoolState.Work) {
            state.take(key, on: loop.map { self.loop($0) }, wantsNew: wantsNew, at: start + .seconds(seconds))
        }

        @Test("The most recently used connection is used first, preferably on the caller's loop")
        func order() {
            var state = PoolState(limits: limits())
            for _ in 0..<3 { #expect(take(&state).answer == .granted(.open)) }
            for (id, loop) in [(1, 0), (2, 1), (3, 0)] as [(UInt64, Int)] {
                #expect(state.release(id, of: Self.a, on: self.loop(loop), at: start) == PoolState.Work())
            }
            #expect(take(&state, on: 1).answer == .granted(.reuse(2)))
            #expect(take(&state, on: 1).answer == .granted(.reuse(3)))
            #expect(take(&state).answer == .granted(.reuse(1)))
            #expect(take(&state, wantsNew: true).answer == .granted(.open))
            #expect(take(&state).answer == .waits(1))
        }

        @Test("B10: a connection that was idle for the limit is closed and not used")
        func idleTime() {
            var state = PoolState(limits: limits())
            for _ in 0..<2 { _ = take(&state) }
            _ = state.release(1, of: Self.a, on: loop(0), at: start)
            _ = state.release(2, of: Self.a, on: loop(0), at: start + .seconds(1))
            #expect(state.nextExpiry == start + .seconds(4))
            let (answer, work) = take(&state, after: 4)
            #expect(answer == .granted(.reuse(2)))
            #expect(work.closing == [1])
            _ = state.release(2, of: Self.a, on: loop(0), at: start + .seconds(4))
            #expect(state.expire(at: start + .seconds(8)).closing == [2])
            #expect(state.nextExpiry == nil)
            #expect(state.isEmpty)
        }

        @Test("A full origin makes room for a connection that must be new, and a full pool for another origin")
        func eviction() {
            var state = PoolState(limits: limits(perOrigin: 1, total: 1))
            _ = take(&state)
            _ = state.release(1, of: Self.a, on: loop(0), at: start)
            let (answer, work) = take(&state, wantsNew: true)
            #expect(answer == .granted(.open) && work.closing == [1])
            _ = state.release(2, of: Self.a, on: loop(0), at: start)
            let (other, evicted) = take(&state, Self.b)
            #expect(other == .granted(.open) && evicted.closing == [2])
            #expect(state.count == 1)
        }

        @Test("With too many idle connections, the oldest is closed")
        func idleLimit() {
            var state = PoolState(limits: limits(idle: 1))
            for _ in 0..<2 { _ = take(&state) }
            _ = state.release(1, of: Self.a, on: loop(0), at: start)
            #expect(state.release(2, of: Self.a, on: loop(0), at: start + .seconds(1)).closing == [1])
            #expect(state.idleCount == 1)
        }

        @Test("Waiters are served in order, with a freed connection or a permission to open one")
        func line() {
            var state = PoolState(limits: limits(perOrigin: 1, total: 4))
            _ = take(&state)
            #expect(take(&state).answer == .waits(1))
            #expect(take(&state, wantsNew: true).answer == .waits(2))
            #expect(take(&state).answer == .waits(3))
            #expect(state.release(7, of: Self.a, on: loop(0), at: start).served == [1: .reuse(7)])
            let work = state.release(7, of: Self.a, on: loop(0), at: start)
            #expect(work.served == [2: .open] && work.closing == [7])
            #expect(state.leave(Self.a).served == [3: .open])
            #expect(state.waitingCount == 0)
        }

        @Test("Waiters for different origins are served first come, first served")
        func fairness() {
            var state = PoolState(limits: limits(perOrigin: 1, total: 1))
            _ = take(&state, Self.a)
            #expect(take(&state, Self.b).answer == .waits(1))
            #expect(take(&state, Self.a).answer == .waits(2))
            let work = state.release(1, of: Self.a, on: loop(0), at: start)
            #expect(work.served == [1: .open] && work.closing == [1])
            #expect(state.leave(Self.b).served == [2: .open])
        }

        @Test("The queue of waiters is bounded, and a waiter can leave it")
        func bounds() {
            var state = PoolState(limits: limits(perOrigin: 1, total: 1, waiting: 1))
            _ = take(&state)
            #expect(take(&state).answer == .waits(1))
            #expect(take(&state).answer == .full)
            let (wasWaiting, isWaiting) = (state.abandon(1, for: Self.a), state.abandon(1, for: Self.a))
            #expect(wasWaiting)
            #expect(!isWaiting)
            #expect(state.leave(Self.a).served.isEmpty)
            #expect(state.isEmpty)
        }

        @Test("After the pool was closed nobody gets a connection, and nothing is kept")
        func shutDown() {
            var state = PoolState(limits: limits(perOrigin: 2, total: 2))
            _ = take(&state)
            _ = take(&state)
            _ = take(&state)
            _ = state.release(1, of: Self.a, on: loop(0), at: start)
            let closing = state.shutDown()
            #expect(closing.isEmpty && state.waitingCount == 0)
            #expect(take(&state).answer == .closed)
            #expect(state.release(1, of: Self.a, on: loop(0), at: start).closing == [1])
            _ = state.leave(Self.a)
            #expect(state.count == 0 && state.isEmpty)
        }

        @Test("Random operations: never too many connections, none lost, nobody overtaken", arguments: 0..<40)
        func walk(_ seed: Int) {
            var random = SeededGenerator(seed: UInt64(seed))
            let bounds = PoolState.Limits(
                perOrigin: Int.random(in: 1...4, using: &random),
                total: Int.random(in: 1...7, using: &random),
                idlePerOrigin: Int.random(in: 0...3, using: &random),
                idleTotal: Int.random(in: 0...4, using: &random),
                idleTime: .seconds(4),
                waiting: Int.random(in: 0...9, using: &random)
            )
            var walk = PoolWalk(limits: bounds)
            for _ in 0..<600 {
                walk.step(using: &random)
                if let fault = walk.fault {
                    Issue.record("seed \(seed): \(fault)")
                    return
                }
            }
            walk.finish()
            #expect(walk.fault == nil, "seed \(seed)")
            #expect(walk.state.isEmpty, "seed \(seed)")
        }
    }
#endif
