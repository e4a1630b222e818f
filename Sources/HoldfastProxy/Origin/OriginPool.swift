// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import NIOCore
    internal import Synchronization

    /// The connections of a transport; carries out what its state decides.
    final class OriginPool: Sendable {
        /// Why no connection is given.
        enum Refusal: Error {
            case lineIsFull, shutDown
        }

        /// Opens a connection for a caller that was allowed to.
        typealias Open =
            @Sendable (_ key: OriginKey, _ loop: any EventLoop, _ end: AttemptEnd) async throws -> ByteChannel

        typealias Waiter = CheckedContinuation<PoolState.Grant, any Error>

        /// The state that the lock guards.
        struct State {
            var pool: PoolState
            var connections: [PoolState.ID: OriginConnection] = [:]
            var waiters: [PoolState.Ticket: Waiter] = [:]
            var lastID: PoolState.ID = 0
            var opened = 0
            var reused = 0
            var sweep: Scheduled<Void>?
        }

        let state: Mutex<State>
        let open: Open
        private let loops: any EventLoopGroup

        init(limits: PoolState.Limits, loops: any EventLoopGroup, open: @escaping Open) {
            state = Mutex(State(pool: PoolState(limits: limits)))
            self.loops = loops
            self.open = open
        }

        var counts: OriginTransport.ConnectionCounts {
            state.withLock { state in
                OriginTransport.ConnectionCounts(
                    open: state.connections.count,
                    idle: state.pool.idleCount,
                    waiting: state.pool.waitingCount,
                    opened: state.opened,
                    reused: state.reused
                )
            }
        }

        /// A connection for one exchange, which ends with ``giveBack(_:)`` or ``discard(_:)``.
        ///
        /// - Parameters:
        ///   - loop: the preferred event loop; nil: any.
        ///   - wantsNew: whether a used connection is not acceptable.
        ///   - end: interrupts it.
        /// - Throws: ``Refusal``, ``AttemptEnd/BrokenOff``, or the error of opening.
        func connection(
            to key: OriginKey,
            on loop: (any EventLoop)?,
            wantsNew: Bool,
            end: AttemptEnd
        ) async throws -> OriginConnection {
            while true {
                switch try await grant(key, on: loop, wantsNew: wantsNew, end: end) {
                case .open:
                    return try await opened(key, on: loop ?? loops.next(), end: end)
                case .reuse(let id):
                    guard let connection = state.withLock({ $0.connections[id] }) else { continue }
                    connection.channel.whenInputEnds(nil)
                    guard connection.isUsable else {
                        discard(connection)
                        continue
                    }
                    state.withLock { $0.reused += 1 }
                    connection.beginExchange()
                    return connection
                }
            }
        }

        /// Takes back a connection that can carry another exchange.
        func giveBack(_ connection: OriginConnection) {
            guard connection.isUsable else { return discard(connection) }
            // Before the pool has it, because afterwards it may belong to another exchange.
            connection.channel.whenInputEnds { [weak self] in self?.dropIdle(connection) }
            change { $0.pool.release(connection.id, of: connection.key, on: connection.loop, at: .now()) }
            if connection.channel.hasInputOrEnded { dropIdle(connection) }
            sweepLater()
        }

        /// Closes a connection that was given out.
        func discard(_ connection: OriginConnection) {
            connection.channel.close()
            change { state in
                guard state.connections.removeValue(forKey: connection.id) != nil else { return PoolState.Work() }
                return state.pool.leave(connection.key)
            }
        }

        /// Closes everything now: idle connections and those in use.
        ///
        /// - Returns: futures that complete when each of them is closed.
        func shutDown() -> [EventLoopFuture<Void>] {
            let (connections, waiters, sweep) = state.withLock { state in
                _ = state.pool.shutDown()
                defer { (state.connections, state.waiters, state.sweep) = ([:], [:], nil) }
                return (Array(state.connections.values), Array(state.waiters.values), state.sweep)
            }
            sweep?.cancel()
            for waiter in waiters { waiter.resume(throwing: Refusal.shutDown) }
            for connection in connections { connection.channel.close() }
            return connections.map(\.channel.closeFuture)
        }

        /// Closes idle connections now, and each other one when its exchange is over.
        func letGo() {
            let (closing, sweep) = state.withLock { state in
                let closing = state.pool.shutDown()
                defer { state.sweep = nil }
                return (closing.compactMap { state.connections.removeValue(forKey: $0) }, state.sweep)
            }
            sweep?.cancel()
            for connection in closing { connection.channel.close() }
        }

        // MARK: Idle connections

        private func dropIdle(_ connection: OriginConnection) {
            let wasIdle = change { state in
                let (wasIdle, work) = state.pool.drop(connection.id, of: connection.key)
                if wasIdle { state.connections[connection.id] = nil }
                return (wasIdle, work)
            }
            if wasIdle { connection.channel.close() }
        }

        /// Schedules a check for when the longest idle connection expires.
        private func sweepLater() {
            state.withLock { state in
                guard state.sweep == nil, !state.pool.isShutDown, let next = state.pool.nextExpiry else { return }
                state.sweep = loops.next().scheduleTask(deadline: next) { [weak self] in self?.sweep() }
            }
        }

        private func sweep() {
            change { state in
                state.sweep = nil
                return state.pool.expire(at: .now())
            }
            sweepLater()
        }

        /// Permission to use a connection or to open one.
        func grant(
            _ key: OriginKey,
            on loop: (any EventLoop)?,
            wantsNew: Bool,
            end: AttemptEnd
        ) async throws -> PoolState.Grant {
            let preferred = loop.map { ObjectIdentifier($0) }
            let answer = change {
                $0.pool.take(key, on: preferred, wantsNew: wantsNew, queues: false, at: .now())
            }
            if case .granted(let grant) = answer { return grant }
            let grant = try await withCheckedThrowingContinuation { (waiter: Waiter) in
                let answer = change { state in
                    let (answer, work) = state.pool.take(
                        key,
                        on: preferred,
                        wantsNew: wantsNew,
                        queues: true,
                        at: .now()
                    )
                    if case .waits(let ticket) = answer { state.waiters[ticket] = waiter }
                    return (answer, work)
                }
                switch answer {
                case .granted(let grant): waiter.resume(returning: grant)
                case .waits(let ticket): end.whenEnded { [weak self] in self?.abandon(ticket, for: key) }
                case .full: waiter.resume(throwing: Refusal.lineIsFull)
                case .closed: waiter.resume(throwing: Refusal.shutDown)
                }
            }
            // The turn may have come just before the end, and another caller can then use it.
            guard end.reason == nil else {
                switch grant {
                case .open:
                    change { $0.pool.leave(key) }
                case .reuse(let id):
                    if let connection = state.withLock({ $0.connections[id] }) { giveBack(connection) }
                }
                throw AttemptEnd.BrokenOff()
            }
            return grant
        }

        private func abandon(_ ticket: PoolState.Ticket, for key: OriginKey) {
            let waiter: Waiter? = state.withLock { state in
                guard state.pool.abandon(ticket, for: key) else { return nil }
                return state.waiters.removeValue(forKey: ticket)
            }
            waiter?.resume(throwing: AttemptEnd.BrokenOff())
        }

        /// A connection that is opened with the pool's permission.
        func opened(_ key: OriginKey, on loop: any EventLoop, end: AttemptEnd) async throws -> OriginConnection {
            let channel: ByteChannel
            do {
                channel = try await open(key, loop, end)
            } catch {
                change { $0.pool.leave(key) }
                throw error
            }
            let connection: OriginConnection? = state.withLock { state in
                guard !state.pool.isShutDown else { return nil }
                state.lastID += 1
                state.opened += 1
                let connection = OriginConnection(id: state.lastID, key: key, channel: channel)
                state.connections[connection.id] = connection
                return connection
            }
            guard let connection else {
                channel.close()
                change { $0.pool.leave(key) }
                throw Refusal.shutDown
            }
            connection.beginExchange()
            return connection
        }

        /// Changes the state and carries out the result: closes connections, and wakes those whose turn has come.
        @discardableResult
        func change<Answer>(_ change: (inout sending State) -> (Answer, PoolState.Work)) -> Answer {
            let (answer, closing, served) = state.withLock { state in
                let (answer, work) = change(&state)
                let closing = work.closing.compactMap { state.connections.removeValue(forKey: $0) }
                let served = work.served.compactMap { ticket, grant in
                    state.waiters.removeValue(forKey: ticket).map { ($0, grant) }
                }
                return (answer, closing, served)
            }
            for connection in closing { connection.channel.close() }
            for (waiter, grant) in served { waiter.resume(returning: grant) }
            return answer
        }

        /// Like ``change(_:)``, for changes without a result.
        func change(_ change: (inout sending State) -> PoolState.Work) {
            self.change { state in ((), change(&state)) }
        }
    }

    /// The server of connections, and how it is reached: connections with the same key are interchangeable.
    struct OriginKey: Sendable, Hashable, CustomStringConvertible {
        /// Whether TLS is used.
        var isSecure: Bool
        /// The host in lower case; an IPv6 address without brackets.
        var host: String
        var port: Int

        var description: String {
            "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }
    }

    /// One connection to an origin, from its opening on.
    final class OriginConnection: Sendable {
        let id: PoolState.ID
        let key: OriginKey
        let channel: ByteChannel
        private let exchanges = Atomic(0)

        init(id: PoolState.ID, key: OriginKey, channel: ByteChannel) {
            self.id = id
            self.key = key
            self.channel = channel
        }

        /// Its loop, as the pool identifies it.
        var loop: PoolState.Loop { ObjectIdentifier(channel.eventLoop) }

        /// Whether it carried an exchange before the current one.
        var isReused: Bool { exchanges.load(ordering: .relaxed) > 1 }

        /// Whether a request can be sent on it: it is open, and the server has sent nothing unrequested.
        var isUsable: Bool { channel.isActive && !channel.hasInputOrEnded }

        /// Notes that it was given out.
        func beginExchange() {
            exchanges.add(1, ordering: .relaxed)
        }
    }
#endif
