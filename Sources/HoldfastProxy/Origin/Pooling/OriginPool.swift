// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import NIOCore
    internal import Synchronization

    /// The connections of a transport: keeps the book, and does what it says.
    final class OriginPool: Sendable {
        /// Why nobody gets a connection.
        enum Refusal: Error {
            case lineIsFull, shutDown
        }

        /// Opens a connection for whoever was given leave to.
        typealias Open =
            @Sendable (_ key: OriginKey, _ loop: any EventLoop, _ end: AttemptEnd) async throws -> ByteChannel

        typealias Waiter = CheckedContinuation<PoolState.Grant, any Error>

        /// What the lock guards.
        struct State {
            var book: PoolState
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
            state = Mutex(State(book: PoolState(limits: limits)))
            self.loops = loops
            self.open = open
        }

        var counts: OriginTransport.ConnectionCounts {
            state.withLock { state in
                OriginTransport.ConnectionCounts(
                    open: state.connections.count,
                    idle: state.book.idleCount,
                    waiting: state.book.waitingCount,
                    opened: state.opened,
                    reused: state.reused
                )
            }
        }

        /// A connection for one exchange, which ends with ``giveBack(_:)`` or ``discard(_:)``.
        ///
        /// - Parameters:
        ///   - loop: where it should live if that can be had; nil: anywhere.
        ///   - wantsNew: whether one that was used will not do.
        ///   - end: breaks it off.
        /// - Throws: ``Refusal``, ``AttemptEnd/BrokenOff``, or what opening fails with.
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

        /// Takes a connection back that can carry another exchange.
        func giveBack(_ connection: OriginConnection) {
            guard connection.isUsable else { return discard(connection) }
            // Before it is in the book, since afterwards it may be another exchange's.
            connection.channel.whenInputEnds { [weak self] in self?.dropIdle(connection) }
            change { $0.book.release(connection.id, of: connection.key, on: connection.loop, at: .now()) }
            if connection.channel.hasInputOrEnded { dropIdle(connection) }
            sweepLater()
        }

        /// Closes a connection that was handed out.
        func discard(_ connection: OriginConnection) {
            connection.channel.close()
            change { state in
                guard state.connections.removeValue(forKey: connection.id) != nil else { return PoolState.Work() }
                return state.book.leave(connection.key)
            }
        }

        /// Closes all, now: what is idle, and what is under way.
        ///
        /// - Returns: when each of them is closed.
        func shutDown() -> [EventLoopFuture<Void>] {
            let (connections, waiters, sweep) = state.withLock { state in
                _ = state.book.shutDown()
                defer { (state.connections, state.waiters, state.sweep) = ([:], [:], nil) }
                return (Array(state.connections.values), Array(state.waiters.values), state.sweep)
            }
            sweep?.cancel()
            for waiter in waiters { waiter.resume(throwing: Refusal.shutDown) }
            for connection in connections { connection.channel.close() }
            return connections.map(\.channel.closeFuture)
        }

        /// Closes what is idle, now, and each other one when its exchange is over.
        func letGo() {
            let (closing, sweep) = state.withLock { state in
                let (closing, _) = state.book.shutDown()
                defer { state.sweep = nil }
                return (closing.compactMap { state.connections.removeValue(forKey: $0) }, state.sweep)
            }
            sweep?.cancel()
            for connection in closing { connection.channel.close() }
        }

        // MARK: Idle connections

        private func dropIdle(_ connection: OriginConnection) {
            let wasIdle = change { state in
                let (wasIdle, work) = state.book.drop(connection.id, of: connection.key)
                if wasIdle { state.connections[connection.id] = nil }
                return (wasIdle, work)
            }
            if wasIdle { connection.channel.close() }
        }

        /// Comes back when the connection that is idle for longest has been so for too long.
        private func sweepLater() {
            state.withLock { state in
                guard state.sweep == nil, !state.book.isShutDown, let next = state.book.nextExpiry else { return }
                state.sweep = loops.next().scheduleTask(deadline: next) { [weak self] in self?.sweep() }
            }
        }

        private func sweep() {
            change { state in
                state.sweep = nil
                return state.book.expire(at: .now())
            }
            sweepLater()
        }
    }
#endif
