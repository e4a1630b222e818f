// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
internal import Holdfast
internal import NIOCore
private import Synchronization

/// The connections of a transport: keeps the book, and does what it says.
final class OriginPool: Sendable {
    /// Why nobody gets a connection.
    enum Refusal: Error {
        case lineIsFull, shutDown
    }

    /// Opens a connection for whoever was given leave to.
    typealias Open = @Sendable (_ key: OriginKey, _ loop: any EventLoop, _ end: AttemptEnd) async throws -> ByteChannel

    private typealias Waiter = CheckedContinuation<PoolState.Grant, any Error>

    private struct State {
        var book: PoolState
        var connections: [PoolState.ID: OriginConnection] = [:]
        var waiters: [PoolState.Ticket: Waiter] = [:]
        var lastID: PoolState.ID = 0
        var opened = 0
        var reused = 0
        var sweep: Scheduled<Void>?
    }

    /// How many connections there are and were.
    struct Counts: Sendable {
        var open = 0
        var idle = 0
        var waiting = 0
        var opened = 0
        var reused = 0
    }

    private let state: Mutex<State>
    private let loops: any EventLoopGroup
    private let open: Open

    init(limits: PoolState.Limits, loops: any EventLoopGroup, open: @escaping Open) {
        state = Mutex(State(book: PoolState(limits: limits)))
        self.loops = loops
        self.open = open
    }

    var counts: Counts {
        state.withLock { state in
            Counts(
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
                let connection = state.withLock { state in
                    state.reused += 1
                    return state.connections[id]
                }
                guard let connection else {
                    perform { $0.leave(key) }
                    continue
                }
                connection.channel.whenInputEnds(nil)
                guard connection.isUsable else {
                    state.withLock { $0.reused -= 1 }
                    discard(connection)
                    continue
                }
                connection.beginExchange()
                return connection
            }
        }
    }

    /// Takes a connection back that can carry another exchange.
    func giveBack(_ connection: OriginConnection) {
        guard connection.isUsable else { return discard(connection) }
        let (id, key) = (connection.id, connection.key)
        perform { $0.release(id, of: key, on: connection.loop, at: .now()) }
        // Only after it is in the book, or an end that came before would find nothing to drop.
        connection.channel.whenInputEnds { [weak self] in self?.dropIdle(connection) }
        scheduleSweep()
    }

    /// Closes a connection that was handed out.
    func discard(_ connection: OriginConnection) {
        connection.channel.close()
        let key = connection.key
        state.withLock { state in
            guard state.connections.removeValue(forKey: connection.id) != nil else { return PoolState.Work() }
            return state.book.leave(key)
        }.perform(in: self)
    }

    /// Closes all, now: what is idle, and what is under way.
    func shutDown() -> [EventLoopFuture<Void>] {
        let (connections, waiters, sweep) = state.withLock { state in
            _ = state.book.shutDown()
            defer { (state.waiters, state.sweep) = ([:], nil) }
            return (Array(state.connections.values), Array(state.waiters.values), state.sweep)
        }
        sweep?.cancel()
        for waiter in waiters { waiter.resume(throwing: Refusal.shutDown) }
        for connection in connections { connection.channel.close() }
        return connections.map(\.channel.closeFuture)
    }
}
#endif
