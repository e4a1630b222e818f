// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage
    private import Synchronization

    /// A lease that this process holds in Redis.
    final class RedisLease: FillLease {
        let followsFill: Bool
        private let token: String
        private let place: LeasePlace
        private let server: any LeaseServer
        private let channel: String
        private let hasEnded = Mutex(false)

        init(_ token: String, at place: LeasePlace, of leases: RedisLeases, followsFill: Bool) {
            self.token = token
            self.place = place
            self.followsFill = followsFill
            server = leases.server
            channel = leases.channel
        }

        deinit { end(.failed) }

        func renew(for length: Duration) async -> Bool {
            if hasEnded.withLock({ $0 }) { return false }
            let arguments = [token, RedisLeases.milliseconds(length)]
            return await server.evaluate(LeaseScript.renew, keys: [place.lease], arguments: arguments) == "kept"
        }

        func end(_ outcome: LeaseOutcome) {
            let isFirst = hasEnded.withLock { hasEnded in
                defer { hasEnded = true }
                return !hasEnded
            }
            guard isFirst else { return }
            let arguments = [token, outcome.rawValue, RedisLeases.milliseconds(RedisLeases.memory), channel]
            let keys = [place.lease, place.end]
            // No one waits for this: a lost server lets the lease expire.
            Task { [server] in _ = await server.evaluate(LeaseScript.end, keys: keys, arguments: arguments) }
        }
    }

    /// Another process's lease in Redis.
    struct SeenRedisLease: ForeignLease {
        let token: String
        let place: LeasePlace
        let leases: RedisLeases

        func end() async -> LeaseOutcome? { await leases.end(of: token, at: place) }
    }
#endif
