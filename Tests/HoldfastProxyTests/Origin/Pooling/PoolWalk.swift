// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import NIOCore

    @testable import HoldfastProxy

    /// A pool of connections that exist on paper only, changed at random, and what must always be true of it.
    struct PoolWalk {
        private(set) var state: PoolState
        private(set) var fault: String?
        private let limits: PoolState.Limits
        private let keys = ["a", "b", "c"].map { OriginKey(isSecure: false, host: $0, port: 80) }
        private let loop = Loop()
        private var now = NIODeadline.uptimeNanoseconds(1)
        private var lastID: PoolState.ID = 0
        private var busy: [(id: PoolState.ID, key: OriginKey)] = []
        private var idle: [PoolState.ID: OriginKey] = [:]
        private var waiting: [(ticket: PoolState.Ticket, key: OriginKey)] = []

        private final class Loop {}

        init(limits: PoolState.Limits) {
            self.limits = limits
            state = PoolState(limits: limits)
        }

        mutating func step(using random: inout some RandomNumberGenerator) {
            now = now + .milliseconds(.random(in: 0...900, using: &random))
            let index = busy.indices.randomElement(using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4: take(keys[Int.random(in: 0..<keys.count, using: &random)], wantsNew: .random(using: &random))
            case 5...6: if let index { release(busy.remove(at: index)) }
            case 7: if let index { obey(state.leave(busy.remove(at: index).key)) }
            case 8:
                if let waiter = waiting.randomElement(using: &random) {
                    if !state.abandon(waiter.ticket, for: waiter.key) { fault = "\(waiter) was not in line" }
                    waiting.removeAll { $0.ticket == waiter.ticket }
                } else if let (id, key) = idle.randomElement(using: &random) {
                    let (wasIdle, work) = state.drop(id, of: key)
                    if !wasIdle { fault = "\(id) was not idle" }
                    idle[id] = nil
                    obey(work)
                }
            default: obey(state.expire(at: now))
            }
            check()
        }

        /// Ends all that is under way.
        mutating func finish() {
            while let last = busy.popLast() { obey(state.leave(last.key)) }
            now = now + .seconds(100)
            obey(state.expire(at: now))
            while let last = busy.popLast() { obey(state.leave(last.key)) }
            check()
            if !idle.isEmpty || !waiting.isEmpty { fault = "\(idle) and \(waiting) were left over" }
        }

        private mutating func take(_ key: OriginKey, wantsNew: Bool) {
            let (answer, work) = state.take(key, on: nil, wantsNew: wantsNew, at: now)
            obey(work)
            switch answer {
            case .granted(let grant): use(grant, for: key)
            case .waits(let ticket):
                waiting.append((ticket, key))
                if waiting.count > limits.waiting { fault = "the line is too long" }
            case .full: if waiting.count < limits.waiting { fault = "refused, although the line is short" }
            case .closed: fault = "closed"
            }
        }

        private mutating func release(_ connection: (id: PoolState.ID, key: OriginKey)) {
            idle[connection.id] = connection.key
            obey(state.release(connection.id, of: connection.key, on: ObjectIdentifier(loop), at: now))
        }

        private mutating func obey(_ work: PoolState.Work) {
            for id in work.closing where idle.removeValue(forKey: id) == nil { fault = "\(id) was closed and not idle" }
            for (ticket, grant) in work.served.sorted(by: { $0.key < $1.key }) {
                guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else {
                    fault = "\(ticket) was served and not in line"
                    continue
                }
                let key = waiting[index].key
                if waiting[..<index].contains(where: { $0.key == key }) { fault = "\(ticket) overtook" }
                waiting.remove(at: index)
                use(grant, for: key)
            }
        }

        private mutating func use(_ grant: PoolState.Grant, for key: OriginKey) {
            switch grant {
            case .open:
                lastID += 1
                busy.append((lastID, key))
            case .reuse(let id):
                if idle.removeValue(forKey: id) != key {
                    fault = "\(id) was given out and not idle, or another origin's"
                }
                busy.append((id, key))
            }
        }

        private mutating func check() {
            if state.count != busy.count + idle.count { fault = "\(state.count) in the book" }
            if state.count > limits.total { fault = "\(state.count) connections" }
            if state.idleCount != idle.count { fault = "\(state.idleCount) idle in the book" }
            if state.idleCount > limits.idleTotal { fault = "\(state.idleCount) idle" }
            if state.waitingCount != waiting.count { fault = "\(state.waitingCount) waiting in the book" }
            for key in keys {
                let counts = state.counts(of: key)
                if counts.busy != busy.count(where: { $0.key == key }) { fault = "\(counts.busy) busy of \(key)" }
                if counts.busy + counts.idle > limits.perOrigin { fault = "\(counts) of \(key)" }
                if counts.idle > limits.idlePerOrigin { fault = "\(counts.idle) idle of \(key)" }
                // Nobody waits for what is there.
                let hasRoom =
                    counts.busy + counts.idle < limits.perOrigin && (state.count < limits.total || !idle.isEmpty)
                if counts.waiting > 0 && (hasRoom || counts.idle > 0) {
                    fault = "\(counts.waiting) wait in vain for \(key)"
                }
            }
        }
    }

    extension PoolState {
        /// How many connections to an origin are given out or being opened, how many are idle, and how many wait for one.
        func counts(of key: OriginKey) -> (busy: Int, idle: Int, waiting: Int) {
            let origin = origins[key]
            return (origin?.busy ?? 0, origin?.idle.count ?? 0, origin?.waiting.count ?? 0)
        }

        /// Whether nothing is stored for any origin.
        var isEmpty: Bool { origins.isEmpty }
    }
#endif
