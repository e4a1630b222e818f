// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    /// The servers behind a reverse proxy: whose turn it is, and who is left out because it fails.
    ///
    /// Round robin. A server that fails three times in a row is left out for 10 s, and for twice as long each further time, up to a
    /// minute; its first success ends that. While all are left out, all are asked.
    final class OriginGroup: Sendable {
        /// A server.
        struct Member: Sendable {
            let origin: ProxyOrigin
            let key: OriginKey
            /// What stands in Host.
            let authority: String

            init(_ origin: ProxyOrigin) {
                self.origin = origin
                let host = origin.host.hasPrefix("[") ? String(origin.host.dropFirst().dropLast()) : origin.host
                key = OriginKey(isSecure: origin.description.hasPrefix("https:"), host: host, port: origin.port)
                authority = String(origin.description.drop { $0 != "/" }.dropFirst(2))
            }
        }

        private struct Standing {
            var failures = 0
            /// How often it was left out without a success in between.
            var ejections = 0
            var outUntil: MonotonicInstant?
        }

        static let failuresAllowed = 3
        static let shortestPause = Duration.seconds(10)
        static let longestPause = Duration.seconds(60)

        let members: [Member]
        /// Whether requests keep the client's Host.
        let keepsHost: Bool
        private let state: Mutex<(turn: Int, standings: [Standing])>

        /// - Parameter origins: at least one.
        init(_ origins: [ProxyOrigin], keepsHost: Bool) {
            members = origins.map { Member($0) }
            self.keepsHost = keepsHost
            state = Mutex((0, origins.map { _ in Standing() }))
        }

        /// Whose turn it is.
        func next(at now: MonotonicInstant) -> Int {
            guard members.count > 1 else { return 0 }
            return state.withLock { state in
                let start = state.turn
                let order = members.indices.map { (start + $0) % members.count }
                let chosen = order.first { index in state.standings[index].outUntil.map { $0 <= now } ?? true } ?? start
                state.turn = (chosen + 1) % members.count
                return chosen
            }
        }

        /// Takes note of how an exchange with a server went.
        func note(_ index: Int, hasFailed: Bool, at now: MonotonicInstant) {
            guard members.count > 1 else { return }
            state.withLock { state in
                guard hasFailed else {
                    state.standings[index] = Standing()
                    return
                }
                state.standings[index].failures += 1
                // One that was left out is on probation: its first failure sends it out again.
                guard state.standings[index].failures >= OriginGroup.failuresAllowed else { return }
                if let end = state.standings[index].outUntil, end > now { return }
                let pause = OriginGroup.shortestPause * (1 << min(state.standings[index].ejections, 3))
                state.standings[index].outUntil = now.advanced(by: min(pause, OriginGroup.longestPause))
                state.standings[index].ejections += 1
            }
        }

        /// The servers, and whether each is asked.
        func standings(at now: MonotonicInstant) -> [(name: String, isUp: Bool)] {
            let standings = state.withLock { $0.standings }
            return zip(members, standings).map { ($0.origin.description, $1.outUntil.map { $0 <= now } ?? true) }
        }
    }
#endif
