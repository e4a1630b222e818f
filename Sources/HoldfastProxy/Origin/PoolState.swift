// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore

    /// Who may use which connection: the pool's state, which knows neither sockets nor clocks.
    ///
    /// Every connection counts from the moment it may be opened until it is gone. Requests that get none wait in line,
    /// and of those for whom there is a connection, the one that has waited longest is served first.
    struct PoolState: Sendable {
        /// How many connections there may be.
        struct Limits: Sendable, Hashable {
            var perOrigin = 256
            var total = 2048
            var idlePerOrigin = 64
            var idleTotal = 256
            var idleTime = TimeAmount.seconds(4)
            var waiting = 16_384
        }

        /// A connection.
        typealias ID = UInt64
        /// A place in line; smaller ones came first.
        typealias Ticket = UInt64
        /// The event loop of a connection.
        typealias Loop = ObjectIdentifier

        /// How a request is served.
        enum Grant: Sendable, Hashable {
            /// With this connection, which has carried an exchange before.
            case reuse(ID)
            /// With permission to open one; ``leave(_:)`` gives it back, and ``release(_:of:on:at:)`` adds the
            /// connection.
            case open
        }

        /// The answer to a request for a connection.
        enum Answer: Sendable, Hashable {
            case granted(Grant)
            /// It has to wait for its turn.
            case waits(Ticket)
            /// The line is too long.
            case full
            /// The pool has been shut down.
            case closed
        }

        /// What to do after a change.
        struct Work: Sendable, Hashable {
            /// Idle connections to close; the pool no longer has them.
            var closing: [ID] = []
            /// The requests whose turn has come.
            var served: [Ticket: Grant] = [:]
        }

        struct Idle {
            let id: ID
            let loop: Loop
            let since: NIODeadline
        }

        struct Waiter {
            let ticket: Ticket
            let wantsNew: Bool
        }

        /// The connections to an origin, and who waits for one.
        struct Origin {
            /// The most recently used one is last.
            var idle: [Idle] = []
            /// Given out, or being opened.
            var busy = 0
            var waiting: [Waiter] = []

            var count: Int { idle.count + busy }
        }

        let limits: Limits
        /// The connections that are open, or being opened.
        private(set) var count = 0
        private(set) var idleCount = 0
        private(set) var waitingCount = 0
        private(set) var isShutDown = false
        private(set) var origins: [OriginKey: Origin] = [:]
        private var lastTicket: Ticket = 0

        init(limits: Limits = Limits()) {
            self.limits = limits
        }

        /// Asks for a connection.
        ///
        /// - Parameters:
        ///   - loop: the preferred event loop; nil: any.
        ///   - wantsNew: whether a used connection is not acceptable.
        ///   - queues: whether to wait in line if there is none; otherwise the answer is `.full`.
        mutating func take(
            _ key: OriginKey,
            on loop: Loop?,
            wantsNew: Bool,
            queues: Bool = true,
            at now: NIODeadline
        ) -> (answer: Answer, work: Work) {
            guard !isShutDown else { return (.closed, Work()) }
            var work = Work()
            expire(key, at: now, work: &work)
            // No one overtakes those in line, who may be waiting for a connection that has just become free.
            if origins[key]?.waiting.isEmpty ?? true, let grant = grant(key, on: loop, wantsNew: wantsNew, work: &work)
            {
                return (.granted(grant), work)
            }
            guard queues, waitingCount < limits.waiting else {
                serve(&work)
                return (.full, work)
            }
            lastTicket += 1
            let ticket = lastTicket
            origins[key, default: Origin()].waiting.append(Waiter(ticket: ticket, wantsNew: wantsNew))
            waitingCount += 1
            serve(&work)
            if let grant = work.served.removeValue(forKey: ticket) { return (.granted(grant), work) }
            return (.waits(ticket), work)
        }

        /// Takes back a connection that can carry another exchange.
        mutating func release(_ id: ID, of key: OriginKey, on loop: Loop, at now: NIODeadline) -> Work {
            var work = Work()
            guard !isShutDown else {
                forget(key)
                work.closing = [id]
                return work
            }
            origins[key]?.busy -= 1
            origins[key]?.idle.append(Idle(id: id, loop: loop, since: now))
            idleCount += 1
            serve(&work)
            if let idle = origins[key]?.idle, idle.count > limits.idlePerOrigin { closeOldest(of: key, &work) }
            if idleCount > limits.idleTotal, let oldest = originOfOldest() { closeOldest(of: oldest, &work) }
            return work
        }

        /// Notes that a connection in use is gone, or that none could be opened.
        mutating func leave(_ key: OriginKey) -> Work {
            forget(key)
            var work = Work()
            serve(&work)
            return work
        }

        /// Notes that an idle connection is gone; false if it was not idle.
        mutating func drop(_ id: ID, of key: OriginKey) -> (wasIdle: Bool, work: Work) {
            var work = Work()
            guard let index = origins[key]?.idle.firstIndex(where: { $0.id == id }) else { return (false, work) }
            origins[key]?.idle.remove(at: index)
            idleCount -= 1
            count -= 1
            tidy(key)
            serve(&work)
            return (true, work)
        }

        /// Leaves the line; false if the turn had already come.
        mutating func abandon(_ ticket: Ticket, for key: OriginKey) -> Bool {
            guard let index = origins[key]?.waiting.firstIndex(where: { $0.ticket == ticket }) else { return false }
            origins[key]?.waiting.remove(at: index)
            waitingCount -= 1
            tidy(key)
            return true
        }

        /// Closes connections that have been idle for too long.
        mutating func expire(at now: NIODeadline) -> Work {
            var work = Work()
            for key in Array(origins.keys) { expire(key, at: now, work: &work) }
            serve(&work)
            return work
        }

        /// When the next connection will have been idle for too long; nil if none is idle.
        var nextExpiry: NIODeadline? {
            origins.values.compactMap { $0.idle.first?.since }.min().map { $0 + limits.idleTime }
        }

        /// Ends everything: those in line get no connection.
        ///
        /// - Returns: the idle connections, which are to be closed.
        mutating func shutDown() -> [ID] {
            isShutDown = true
            let closing = origins.values.flatMap { $0.idle.map(\.id) }
            for key in Array(origins.keys) {
                origins[key]?.idle = []
                origins[key]?.waiting = []
                tidy(key)
            }
            count -= idleCount
            (idleCount, waitingCount) = (0, 0)
            return closing
        }
    }

    extension PoolState {
        /// What can be given out for an origin now.
        private mutating func grant(_ key: OriginKey, on loop: Loop?, wantsNew: Bool, work: inout Work) -> Grant? {
            var origin = origins[key] ?? Origin()
            if !wantsNew, !origin.idle.isEmpty {
                let index = origin.idle.lastIndex { $0.loop == loop } ?? origin.idle.count - 1
                let idle = origin.idle.remove(at: index)
                origin.busy += 1
                origins[key] = origin
                idleCount -= 1
                return .reuse(idle.id)
            }
            if origin.count >= limits.perOrigin {
                guard !origin.idle.isEmpty else { return nil }
                closeOldest(of: key, &work)
            } else if count >= limits.total {
                guard let oldest = originOfOldest() else { return nil }
                closeOldest(of: oldest, &work)
            }
            origins[key, default: Origin()].busy += 1
            count += 1
            return .open
        }

        /// Serves as many as possible, in the order they came.
        private mutating func serve(_ work: inout Work) {
            while waitingCount > 0 {
                var first: (key: OriginKey, waiter: Waiter)?
                for (key, origin) in origins {
                    guard let waiter = origin.waiting.first, waiter.ticket < first?.waiter.ticket ?? .max else {
                        continue
                    }
                    let hasRoom = origin.count < limits.perOrigin && (count < limits.total || idleCount > 0)
                    if hasRoom || !origin.idle.isEmpty { first = (key, waiter) }
                }
                guard let first, let grant = grant(first.key, on: nil, wantsNew: first.waiter.wantsNew, work: &work)
                else {
                    return
                }
                origins[first.key]?.waiting.removeFirst()
                waitingCount -= 1
                work.served[first.waiter.ticket] = grant
            }
        }

        private mutating func expire(_ key: OriginKey, at now: NIODeadline, work: inout Work) {
            while let first = origins[key]?.idle.first, first.since + limits.idleTime <= now {
                closeOldest(of: key, &work)
            }
        }

        private func originOfOldest() -> OriginKey? {
            var oldest: (key: OriginKey, since: NIODeadline)?
            for (key, origin) in origins {
                guard let since = origin.idle.first?.since, since < oldest?.since ?? .distantFuture else { continue }
                oldest = (key, since)
            }
            return oldest?.key
        }

        private mutating func closeOldest(of key: OriginKey, _ work: inout Work) {
            guard let idle = origins[key]?.idle, !idle.isEmpty else { return }
            work.closing.append(idle[0].id)
            origins[key]?.idle.removeFirst()
            idleCount -= 1
            count -= 1
            tidy(key)
        }

        private mutating func forget(_ key: OriginKey) {
            guard let busy = origins[key]?.busy, busy > 0 else { return }
            origins[key]?.busy -= 1
            count -= 1
            tidy(key)
        }

        private mutating func tidy(_ key: OriginKey) {
            guard let origin = origins[key], origin.count == 0, origin.waiting.isEmpty else { return }
            origins[key] = nil
        }
    }
#endif
