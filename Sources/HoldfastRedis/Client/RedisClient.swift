// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import Foundation
    internal import HoldfastStorage
    internal import Synchronization

    /// Sends commands to a Redis server over a few connections with a thread each; commands that wait together are sent
    /// together.
    ///
    /// No call blocks a cooperative thread. If the server is lost or slow, the calls in progress wait for their timeout. After
    /// that every call fails at once with `.temporarilyUnavailable`, until a call that is let through gets an answer.
    final class RedisClient: Sendable {
        /// The client's settings.
        struct Options: Sendable {
            var connections = 4
            var connectTimeout = Duration.milliseconds(500)
            var commandTimeout = Duration.milliseconds(500)
            /// The most commands that may wait; more are refused.
            var waiting = 4_096
            var firstRest = Duration.milliseconds(250)
            var longestRest = Duration.seconds(5)
        }

        let address: RedisAddress
        let options: Options

        private struct State {
            var queue: [RedisJob] = []
            var gate: RedisGate
            var isClosed = false
            var workers = 0
        }

        private let state: Mutex<State>
        private let work = DispatchSemaphore(value: 0)
        private let clock = ContinuousClock()
        /// How often the server was found to have become a replica: connections from before lead to it.
        private let demoted = Atomic(0)
        var demotions: Int { demoted.load(ordering: .acquiring) }

        /// Creates a client; it connects when first used. `close()` ends its threads.
        init(_ address: RedisAddress, options: Options = Options()) {
            self.address = address
            self.options = options
            let gate = RedisGate(firstRest: options.firstRest, longestRest: options.longestRest)
            state = Mutex(State(gate: gate))
        }

        /// Whether the server answered the last time, or was not asked yet.
        var isReachable: Bool { state.withLock { $0.gate.isOpen } }

        /// Sends one command.
        ///
        /// - Throws: `.io` if the server cannot be reached or answers too late, `.temporarilyUnavailable` if that happened
        /// recently,
        ///   `.closed`, or `.cancelled` at once when the task is cancelled; the command may still be executed.
        func send(_ command: RedisCommand) async throws(StoreError) -> RedisReply {
            try await send([command])[0]
        }

        /// Sends commands in order over one connection; otherwise like ``send(_:)``.
        func send(_ commands: [RedisCommand]) async throws(StoreError) -> [RedisReply] {
            guard !commands.isEmpty else { return [] }
            let job = RedisJob(commands)
            if let refusal = enqueue(job) { throw refusal }
            let result: Result<[RedisReply], StoreError> = await withTaskCancellationHandler {
                await withCheckedContinuation { job.wait(with: $0) }
            } onCancel: {
                job.finish(.failure(StoreError(.cancelled, "The task was cancelled while it waited for Redis.")))
            }
            return try result.get()
        }

        /// Runs a script, given the number of its keys, the keys and its arguments; the text is sent only to a server that does
        /// not know it.
        func run(_ script: RedisScript, with words: [[UInt8]]) async throws(StoreError) -> RedisReply {
            let reply = try await send(RedisCommand([Array("EVALSHA".utf8), Array(script.digest.utf8)] + words))
            guard reply.errorText?.hasPrefix("NOSCRIPT") ?? false else { return reply }
            return try await send(RedisCommand([Array("EVAL".utf8), Array(script.text.utf8)] + words))
        }

        /// Sends commands whose replies are not needed; failures are not reported.
        func post(_ commands: [RedisCommand]) {
            guard !commands.isEmpty else { return }
            _ = enqueue(RedisJob(commands))
        }

        /// Ends the threads after their current work; waiting commands fail with `.closed`. Idempotent.
        func close() {
            let (jobs, workers) = state.withLock { state in
                state.isClosed = true
                defer { state.queue = [] }
                return (state.queue, state.workers)
            }
            for job in jobs { job.finish(.failure(RedisClient.closed)) }
            for _ in 0..<workers { work.signal() }
        }

        deinit {
            close()
        }

        private func enqueue(_ job: RedisJob) -> StoreError? {
            let now = clock.now
            let limit = options.waiting
            let most = max(1, options.connections)
            let (refusal, starts) = state.withLock { state -> (StoreError?, Bool) in
                if state.isClosed { return (RedisClient.closed, false) }
                guard state.queue.count < limit else {
                    return (
                        StoreError(
                            .temporarilyUnavailable,
                            "Too many commands wait for Redis, so this call does not use it."
                        ), false
                    )
                }
                guard state.gate.admits(now: now) else {
                    return (
                        StoreError(.temporarilyUnavailable, "Redis did not answer recently. It is tried again soon."),
                        false
                    )
                }
                state.queue.append(job)
                // Another thread only if the existing ones are busy.
                let starts = state.workers < most && state.queue.count > (state.workers == 0 ? 0 : 1)
                if starts { state.workers += 1 }
                return (nil, starts)
            }
            if let refusal { return refusal }
            if starts { startWorker() }
            work.signal()
            return nil
        }

        private func startWorker() {
            let (work, address, options) = (work, address, options)
            let thread = Thread { [weak self] in
                var connection: RedisConnection?
                var demotions = 0
                while true {
                    work.wait()
                    guard let client = self, let batch = client.take() else { return }
                    if client.demotions != demotions { (connection, demotions) = (nil, client.demotions) }
                    connection = client.run(batch, over: connection, at: address, options: options)
                }
            }
            thread.name = "holdfast.redis"
            thread.start()
        }

        /// The waiting jobs that still want an answer, in order, up to a limit; nil at the end.
        private func take() -> [RedisJob]? {
            state.withLock { state in
                if state.isClosed { return nil }
                var (count, commands) = (0, 0)
                while count < state.queue.count, commands < 64 {
                    commands += state.queue[count].commands.count
                    count += 1
                }
                defer { state.queue.removeFirst(count) }
                let jobs = state.queue.prefix(count).filter { !$0.isFinished }
                // While the gate is closed, only the job that was to find out can have waited.
                if count > 0, jobs.isEmpty { state.gate.noteUnasked() }
                return jobs
            }
        }

        /// - Returns: the connection, if it can be used again.
        private func run(
            _ jobs: [RedisJob],
            over connection: RedisConnection?,
            at address: RedisAddress,
            options: Options
        ) -> RedisConnection? {
            guard !jobs.isEmpty else { return connection }
            do throws(StoreError) {
                let used: RedisConnection
                if let connection, !connection.isStale {
                    used = connection
                } else {
                    used = try RedisConnection(
                        address,
                        connectTimeout: options.connectTimeout,
                        commandTimeout: options.commandTimeout
                    )
                }
                var replies = try used.exchange(jobs.flatMap(\.commands))[...]
                let refusals = replies.compactMap { $0.refusal?.code }
                let isReplica = refusals.contains(.readOnly)
                if isReplica { demoted.add(1, ordering: .acquiringAndReleasing) }
                let now = clock.now
                state.withLock { state in
                    if isReplica {
                        state.gate.noteFailure(now: now, share: Double.random(in: 0...1))
                    } else {
                        state.gate.noteSuccess()
                    }
                }
                for job in jobs {
                    job.finish(.success(Array(replies.prefix(job.commands.count))))
                    replies = replies.dropFirst(job.commands.count)
                }
                // A server that became a replica, or now wants a password, needs a new connection.
                return isReplica || refusals.contains(.badConfiguration) ? nil : used
            } catch {
                let now = clock.now
                let waiting = state.withLock { state in
                    state.gate.noteFailure(now: now, share: Double.random(in: 0...1))
                    defer { state.queue = [] }
                    return state.queue
                }
                // Jobs that wait behind would wait for the same.
                for job in jobs + waiting { job.finish(.failure(error)) }
                return nil
            }
        }

        private static let closed = StoreError(.closed, "The store is closed; open it again.")
    }

    /// Commands on their way, and the caller that waits for their replies.
    private final class RedisJob: Sendable {
        private enum Progress {
            case begun
            case waiting(CheckedContinuation<Result<[RedisReply], StoreError>, Never>)
            case finished(Result<[RedisReply], StoreError>)
        }

        let commands: [RedisCommand]
        private let progress = Mutex(Progress.begun)

        init(_ commands: [RedisCommand]) {
            self.commands = commands
        }

        var isFinished: Bool {
            progress.withLock { progress in
                if case .finished = progress { true } else { false }
            }
        }

        func wait(with continuation: CheckedContinuation<Result<[RedisReply], StoreError>, Never>) {
            let result: Result<[RedisReply], StoreError>? = progress.withLock { progress in
                if case .finished(let result) = progress { return result }
                progress = .waiting(continuation)
                return nil
            }
            if let result { continuation.resume(returning: result) }
        }

        /// Only the first result counts.
        func finish(_ result: Result<[RedisReply], StoreError>) {
            let continuation: CheckedContinuation<Result<[RedisReply], StoreError>, Never>? = progress.withLock {
                progress in
                switch progress {
                case .finished: return nil
                case .begun:
                    progress = .finished(result)
                    return nil
                case .waiting(let continuation):
                    progress = .finished(result)
                    return continuation
                }
            }
            continuation?.resume(returning: result)
        }
    }

    /// Decides whether a server may be asked: after a failure it is left alone for a while, and then one caller finds out
    /// whether it is back.
    ///
    /// A value without effects; times are instants of a clock that the caller reads.
    struct RedisGate: Sendable {
        /// The first wait after a failure.
        let firstRest: Duration
        /// The longest wait.
        let longestRest: Duration

        private var failures = 0
        private var closedUntil: ContinuousClock.Instant?
        private var isProbing = false

        init(firstRest: Duration, longestRest: Duration) {
            self.firstRest = firstRest
            self.longestRest = longestRest
        }

        /// Whether everyone may ask.
        var isOpen: Bool { closedUntil == nil }

        /// Whether this caller may ask; if it may while the gate is closed, it is the one that finds out.
        mutating func admits(now: ContinuousClock.Instant) -> Bool {
            guard let closedUntil else { return true }
            guard now >= closedUntil, !isProbing else { return false }
            isProbing = true
            return true
        }

        /// The server answered.
        ///
        /// Answers to commands sent before the gate closed do not open it.
        mutating func noteSuccess() {
            if closedUntil != nil, !isProbing { return }
            failures = 0
            closedUntil = nil
            isProbing = false
        }

        /// The caller that was to find out has left; the next one finds out.
        mutating func noteUnasked() {
            isProbing = false
        }

        /// The server did not answer, or not in time.
        ///
        /// Failures of commands sent before the gate closed do not lengthen the wait.
        ///
        /// - Parameter share: a random number from 0 to 1, so that a fleet does not return all at once.
        mutating func noteFailure(now: ContinuousClock.Instant, share: Double) {
            if let closedUntil, !isProbing, now < closedUntil { return }
            isProbing = false
            failures = min(failures + 1, 30)
            var rest = firstRest
            for _ in 1..<failures where rest < longestRest { rest *= 2 }
            rest = min(rest, longestRest)
            closedUntil = now.advanced(by: rest * (0.5 + 0.5 * min(1, max(0, share))))
        }
    }
#endif
