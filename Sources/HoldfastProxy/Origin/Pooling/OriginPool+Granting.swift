// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore
    private import Synchronization

    extension OriginPool {
        /// Leave to use a connection or to open one.
        func grant(
            _ key: OriginKey,
            on loop: (any EventLoop)?,
            wantsNew: Bool,
            end: AttemptEnd
        ) async throws -> PoolState.Grant {
            let preferred = loop.map { ObjectIdentifier($0) }
            let answer = change {
                $0.book.take(key, on: preferred, wantsNew: wantsNew, queues: false, at: .now())
            }
            if case .granted(let grant) = answer { return grant }
            let grant = try await withCheckedThrowingContinuation { (waiter: Waiter) in
                let answer = change { state in
                    let (answer, work) = state.book.take(
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
            // The turn may have come just before the end did, and then somebody else is glad of it.
            guard end.reason == nil else {
                switch grant {
                case .open:
                    change { $0.book.leave(key) }
                case .reuse(let id):
                    if let connection = state.withLock({ $0.connections[id] }) { giveBack(connection) }
                }
                throw AttemptEnd.BrokenOff()
            }
            return grant
        }

        private func abandon(_ ticket: PoolState.Ticket, for key: OriginKey) {
            let waiter: Waiter? = state.withLock { state in
                guard state.book.abandon(ticket, for: key) else { return nil }
                return state.waiters.removeValue(forKey: ticket)
            }
            waiter?.resume(throwing: AttemptEnd.BrokenOff())
        }

        /// A connection that is opened by leave of the book.
        func opened(_ key: OriginKey, on loop: any EventLoop, end: AttemptEnd) async throws -> OriginConnection {
            let channel: ByteChannel
            do {
                channel = try await open(key, loop, end)
            } catch {
                change { $0.book.leave(key) }
                throw error
            }
            let connection: OriginConnection? = state.withLock { state in
                guard !state.book.isShutDown else { return nil }
                state.lastID += 1
                state.opened += 1
                let connection = OriginConnection(id: state.lastID, key: key, channel: channel)
                state.connections[connection.id] = connection
                return connection
            }
            guard let connection else {
                channel.close()
                change { $0.book.leave(key) }
                throw Refusal.shutDown
            }
            connection.beginExchange()
            return connection
        }

        /// Changes the book and does what it says: closes connections, and wakes those whose turn has come.
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

        /// As ``change(_:)``, where the book answers nothing.
        func change(_ change: (inout sending State) -> PoolState.Work) {
            self.change { state in ((), change(&state)) }
        }
    }
#endif
