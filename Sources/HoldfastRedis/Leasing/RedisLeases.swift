// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    package import Holdfast
    internal import HoldfastSemantics
    package import HoldfastStorage
    internal import Synchronization

    /// The leases in Redis, which decide which of the processes that share it fetches a missing response.
    ///
    /// A lease is a key that only one process can set, and that expires by the server's clock. Its end is published on one
    /// channel for all. A process that waits also checks now and then, because a message may be missed and a holder that died
    /// publishes nothing. A server that is lost, or does not answer in time, grants nothing and ends every wait: the requests
    /// continue without leases.
    package final class RedisLeases: FillLeasing {
        /// How long the outcome of a lease is remembered.
        static let memory = Duration.seconds(10)
        /// How often a waiting task checks although no message has arrived.
        private static let longestTrust = Duration.seconds(1)
        /// A server that is not lost answers long before this; its client has its own timeout.
        private static let longestAsking = Duration.seconds(10)

        let server: any LeaseServer
        let clock: any HoldfastClock
        let channel: String
        private let prefix: String
        private let board = LeaseBoard()
        private let subscription = Mutex<Task<Void, Never>?>(nil)

        /// - Parameters:
        ///   - prefix: the beginning of all keys of the store.
        ///   - clock: measures how long to wait for a message and for an answer.
        package init(_ server: any LeaseServer, prefix: String, clock: any HoldfastClock = SystemClock()) {
            self.server = server
            self.prefix = prefix
            self.clock = clock
            channel = prefix + "fills"
        }

        deinit { subscription.withLock { $0 }?.cancel() }

        package func lease(_ key: StoreKey, variant: StoreKey, for length: Duration) async -> LeaseAnswer {
            let digest = SHA256Digest(hashing: key.bytes).hex
            let place = LeasePlace(prefix: prefix, digest: digest, variant: variant)
            let end = clock.now.advanced(by: RedisLeases.longestAsking)
            do {
                // A caller that leaves must not leave a lease that no one ends, so the request itself continues.
                return try await withDeadline(end, on: clock, discard: RedisLeases.giveBack) { [self] in
                    await Task { await ask(place, for: length) }.value
                }
            } catch {
                return .unavailable
            }
        }

        private static func giveBack(_ answer: LeaseAnswer) {
            if case .granted(let lease) = answer { lease.end(.failed) }
        }

        private func ask(_ place: LeasePlace, for length: Duration) async -> LeaseAnswer {
            var random = SystemRandomNumberGenerator()
            let token = (0..<16).map { _ in LeasePlace.hex(.random(in: 0...255, using: &random)) }.joined()
            let answer = await server.evaluate(
                LeaseScript.take,
                keys: [place.lease, place.end],
                arguments: [token, RedisLeases.milliseconds(length)]
            )
            guard let words = answer?.split(separator: " ", maxSplits: 1).map(String.init), words.count == 2 else {
                return .unavailable
            }
            if words[0] == "granted" {
                let last = LeaseOutcome(rawValue: words[1])
                return .granted(RedisLease(token, at: place, of: self, followsFill: last == .stored))
            }
            return words[0] == "held"
                ? .held(SeenRedisLease(token: words[1], place: place, leases: self)) : .unavailable
        }

        /// Waits for the end of another process's lease.
        func end(of token: String, at place: LeasePlace) async -> LeaseOutcome? {
            board.expect(token)
            defer { board.forget(token) }
            listen()
            while !Task.isCancelled {
                let answer = await server.evaluate(
                    LeaseScript.look,
                    keys: [place.lease, place.end],
                    arguments: [token]
                )
                guard let words = answer?.split(separator: " ", maxSplits: 1).map(String.init), let first = words.first
                else { return nil }
                switch first {
                case "ended": return words.count == 2 ? LeaseOutcome(rawValue: words[1]) ?? .failed : .failed
                case "out": break
                default: return .failed
                }
                let left = Duration.milliseconds(max(1, words.count == 2 ? Int64(words[1]) ?? 1 : 1))
                let until = clock.now.advanced(by: min(left, RedisLeases.longestTrust))
                do {
                    let told = try await withDeadline(until, on: clock, discard: { _ in }) { [board] in
                        await board.outcome(of: token)
                    }
                    if let told { return told }
                } catch {
                    // No message has arrived so far.
                    if error.isCancellation { return nil }
                }
            }
            return nil
        }

        /// Starts listening for the ends of leases, from the first wait on.
        private func listen() {
            subscription.withLock { subscription in
                guard subscription == nil else { return }
                subscription = Task { [server, board, channel, weak self] in
                    await server.subscribe(channel) { board.receive($0) }
                    // The next task that waits tries again.
                    self?.subscription.withLock { $0 = nil }
                }
            }
        }

        /// How many tasks wait for leases of others.
        package var waiting: Int { board.count }

        static func milliseconds(_ duration: Duration) -> String {
            let (seconds, attoseconds) = duration.components
            let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
            return String(max(1, overflow ? .max / 4 : whole &+ attoseconds / 1_000_000_000_000_000))
        }
    }

    /// A lease that this process holds in Redis.
    final class RedisLease: FillLease {
        let followsFill: Bool
        private let token: String
        private let place: LeasePlace
        private let server: any LeaseServer
        private let clock: any HoldfastClock
        private let channel: String
        private let hasEnded = Mutex(false)
        /// How often, and until when together, a lost server is told the end: then the lease has expired.
        private static let (tries, pause) = (20, Duration.milliseconds(250))

        init(_ token: String, at place: LeasePlace, of leases: RedisLeases, followsFill: Bool) {
            self.token = token
            self.place = place
            self.followsFill = followsFill
            server = leases.server
            clock = leases.clock
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
            // No one waits for this; but everyone would wait for the lease to expire, once a server is back that was lost.
            Task { [server, clock] in
                for _ in 0..<RedisLease.tries {
                    if await server.evaluate(LeaseScript.end, keys: keys, arguments: arguments) != nil { return }
                    guard (try? await clock.sleep(until: clock.now.advanced(by: RedisLease.pause))) != nil else {
                        return
                    }
                }
            }
        }
    }

    /// Another process's lease in Redis.
    struct SeenRedisLease: ForeignLease {
        let token: String
        let place: LeasePlace
        let leases: RedisLeases

        func end() async -> LeaseOutcome? { await leases.end(of: token, at: place) }
    }

    /// What leases need from a Redis server.
    ///
    /// **Use.** ``RedisLeases`` calls it. **Implement.** The methods neither throw nor wait for a server that is known to be
    /// lost; cancelling the task ends a wait at once.
    package protocol LeaseServer: Sendable {
        /// Runs a script whose keys are all in one slot.
        ///
        /// - Returns: the bulk string that the script returned; nil if the server is lost or too slow, or refused.
        func evaluate(_ script: RedisScript, keys: [String], arguments: [String]) async -> String?

        /// Calls `receive` with the messages of a channel until the subscription is lost or the task is cancelled.
        func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async
    }

    extension RedisClient: LeaseServer {
        package func evaluate(_ script: RedisScript, keys: [String], arguments: [String]) async -> String? {
            let words = (["\(keys.count)"] + keys + arguments).map { Array($0.utf8) }
            return (try? await run(script, with: words))?.bytes.map { String(decoding: $0, as: UTF8.self) }
        }

        package func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async {
            let (losses, loss) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let subscription = RedisSubscription(to: [channel], of: self) { event in
                switch event {
                case .listening, .failed: break
                case .lost: loss.finish()
                case .message(_, let payload): receive(String(decoding: payload, as: UTF8.self))
                }
            }
            for await _ in losses {}
            subscription.end()
        }
    }
#endif
