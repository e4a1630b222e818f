// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    /// The servers behind a reverse proxy: which one is next, and which are left out because they fail.
    ///
    /// Uses the servers in turn. A server that fails three times in a row is not used for 10 s, and each further time
    /// for twice as long, up to a minute; its first success ends that. A server that its checks found down is not used
    /// until they find it up. If no server is left, the failing ones are used, and if all are down, all of them.
    final class OriginGroup: Sendable {
        /// A server.
        struct Member: Sendable {
            let origin: ProxyOrigin
            let key: OriginKey
            /// The Host field.
            let authority: String

            init(_ origin: ProxyOrigin) {
                self.origin = origin
                key = OriginKey(
                    isSecure: origin.description.hasPrefix("https:"),
                    host: origin.host.withoutBrackets,
                    port: origin.port
                )
                authority = String(origin.description.drop { $0 != "/" }.dropFirst(2))
            }
        }

        private struct Standing {
            var failures = 0
            /// How often it was left out without a success in between.
            var ejections = 0
            var outUntil: MonotonicInstant?
            /// The latest calls that failed here: their retries go to another server.
            var failedCalls: [CallID] = []
            /// The result of its checks; as at the start if there are none.
            var health = CheckedHealth()

            func isAsked(at now: MonotonicInstant) -> Bool { health.isUp && (outUntil.map { $0 <= now } ?? true) }
        }

        /// The state of a server.
        struct Report: Sendable {
            let name: String
            /// Whether the server is used.
            let isUp: Bool
            let health: CheckedHealth
        }

        static let failuresAllowed = 3
        static let shortestPause = Duration.seconds(10)
        static let longestPause = Duration.seconds(60)
        /// How many calls that failed at a server are remembered.
        private static let callsRemembered = 64

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

        /// The next server; for a call that has failed at some, another one if there is one.
        func next(at now: MonotonicInstant, for call: CallID? = nil) -> Int {
            guard members.count > 1 else { return 0 }
            return state.withLock { state in
                let start = state.turn
                let order = members.indices.map { (start + $0) % members.count }
                let asked = order.filter { state.standings[$0].isAsked(at: now) }
                let chosen =
                    asked.first { index in call.map { !state.standings[index].failedCalls.contains($0) } ?? true }
                    ?? asked.first
                    ?? order.first { state.standings[$0].health.isUp } ?? start
                state.turn = (chosen + 1) % members.count
                return chosen
            }
        }

        /// Notes the response of a server; nil: it closed the connection without one.
        func note(_ index: Int, status: StatusCode?, at now: MonotonicInstant, for call: CallID? = nil) {
            let hasFailed = status.map { [502, 503, 504].contains($0.rawValue) } ?? true
            note(index, hasFailed: hasFailed, at: now, for: call)
        }

        /// Notes the error of an exchange with a server; a cancelled or invalid request says nothing about the server, unless the
        /// proxy has cancelled an upload that the server left unanswered.
        func note(_ index: Int, error: any Error, at now: MonotonicInstant, for call: CallID? = nil) {
            if error is CancellationError, WatchedUpload.current?.hasStalled == true {
                return note(index, hasFailed: true, at: now, for: call)
            }
            guard let code = (error as? ServiceError)?.code, code != .badRequest, code != .unsupported else { return }
            note(index, hasFailed: true, at: now, for: call)
        }

        /// Notes the outcome of an exchange with a server.
        func note(_ index: Int, hasFailed: Bool, at now: MonotonicInstant, for call: CallID? = nil) {
            guard members.count > 1 else { return }
            state.withLock { state in
                guard hasFailed else {
                    let former = state.standings[index]
                    state.standings[index] = Standing(failedCalls: former.failedCalls, health: former.health)
                    return
                }
                if let call {
                    let kept = state.standings[index].failedCalls.suffix(OriginGroup.callsRemembered - 1)
                    state.standings[index].failedCalls = Array(kept) + [call]
                }
                state.standings[index].failures += 1
                // A server that was left out is on probation: its first failure puts it out again.
                guard state.standings[index].failures >= OriginGroup.failuresAllowed else { return }
                if let end = state.standings[index].outUntil, end > now { return }
                let pause = OriginGroup.shortestPause * (1 << min(state.standings[index].ejections, 3))
                state.standings[index].outUntil = now.advanced(by: min(pause, OriginGroup.longestPause))
                state.standings[index].ejections += 1
            }
        }

        /// Records the result of a check.
        ///
        /// - Returns: whether the server went down or came up with this result.
        func note(_ index: Int, hasPassed: Bool) -> Bool {
            state.withLock { $0.standings[index].health.note(hasPassed: hasPassed) }
        }

        /// The servers, and whether each is used.
        func standings(at now: MonotonicInstant) -> [Report] {
            let standings = state.withLock { $0.standings }
            return zip(members, standings).map { member, standing in
                Report(name: member.origin.description, isUp: standing.isAsked(at: now), health: standing.health)
            }
        }
    }
#endif
