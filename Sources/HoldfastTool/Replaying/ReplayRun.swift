// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Replays a trace with several policies and sizes, several at a time.
    struct ReplayRun: Sendable {
        let trace: RequestTrace
        let scale: ReplayScale
        let policies: [ReplayPolicy]
        let sizes: [CacheSize]
        let seed: UInt64
        let console: Console

        /// The results.
        struct Outcome: Sendable {
            /// By policy, then by size, in the order requested.
            let cells: [ReplayCell]
            /// An unlimited cache.
            let ceiling: ReplayCell
            /// LRU at every size, if one pass gave it.
            let stack: StackDistances?
        }

        /// Makes all replays, on threads that may be kept busy.
        func run(width: Int) async throws -> Outcome {
            let progress = ProgressLine(on: console)
            defer { progress.clear() }
            let needsBound = policies.contains(where: \.isBound)
            let (trace, isPlain) = (trace, !trace.hasLives && trace.changes == 0)
            let wantsStack = isPlain && policies.contains(Self.lru)
            let stack = wantsStack ? try await BlockingWork.run { StackDistances(trace) } : nil
            let bound = needsBound ? try await BlockingWork.run { BeladyBound(trace) } : nil
            let jobs = policies.flatMap { policy in sizes.map { (policy, $0) } }
            let meter = ProgressMeter(total: (jobs.count + 1) * trace.requests.count, on: progress) { _ in "replaying" }
            var cells: [ReplayCell?] = Array(repeating: nil, count: jobs.count)
            try await withThrowingTaskGroup(of: (Int, ReplayCell).self) { group in
                var next = 0
                func begin() {
                    guard next < jobs.count else { return }
                    let (index, (policy, size)) = (next, jobs[next])
                    next += 1
                    group.addTask {
                        try await Self.onThread {
                            (index, cell(policy, size: size, bound: bound, stack: stack, meter: meter))
                        }
                    }
                }
                for _ in 0..<max(1, width) { begin() }
                for try await (index, cell) in group {
                    cells[index] = cell
                    begin()
                }
            }
            let ceiling = try await BlockingWork.run { self.ceiling(meter) }
            return Outcome(cells: cells.compactMap { $0 }, ceiling: ceiling, stack: stack)
        }

        /// Runs a replay on a thread of its own: it keeps a processor busy, and the threads for files are few.
        static func onThread<Value: Sendable>(
            _ work: @escaping @Sendable () throws -> Value
        ) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
            }
        }

        static let lru = ReplayPolicy(name: "lru", form: .policy(.lru))
        static let unbounded = ReplayPolicy(name: "unbounded", form: .policy(.lru))

        private func cell(
            _ policy: ReplayPolicy,
            size: CacheSize,
            bound: BeladyBound?,
            stack: StackDistances?,
            meter: ProgressMeter
        ) -> ReplayCell {
            let whole = size.bytes(uniqueBytes: scale.workingSet)
            let capacity = size.bytes(uniqueBytes: trace.uniqueBytes, rate: scale.share)
            let result: HitRateResult
            switch policy.form {
            case .bound(let rule):
                result =
                    bound?.replay(rule, capacity: capacity) ?? HitRateResult(policy: policy.name, capacity: capacity)
                meter.advance(by: trace.requests.count)
            case .policy(let strategy):
                if let stack, policy == Self.lru, scale.rate == 1, capacity >= stack.exactFrom {
                    meter.advance(by: trace.requests.count)
                    return ReplayCell(
                        policy: policy,
                        size: size,
                        capacity: whole,
                        objectHitRatio: stack.hitRatio(capacity: capacity) * scale.objectShare,
                        byteHitRatio: stack.hitRatio(capacity: capacity, .byte) * scale.byteShare,
                        expiredRatio: 0
                    )
                }
                result = replay(strategy, capacity: capacity, meter: meter)
            }
            return scale.cell(policy, size: size, capacity: whole, result: result)
        }

        private func replay(_ strategy: EvictionStrategy, capacity: Int, meter: ProgressMeter) -> HitRateResult {
            var simulator = HitRateSimulator()
            simulator.add(strategy, capacity: capacity, seed: seed)
            var before = 0
            simulator.replay(trace) { done in
                meter.advance(by: done - before)
                before = done
            }
            return simulator.results.first ?? HitRateResult(policy: strategy.description, capacity: capacity)
        }

        private func ceiling(_ meter: ProgressMeter) -> ReplayCell {
            let size = CacheSize.all
            return scale.cell(
                Self.unbounded,
                size: size,
                capacity: .max,
                result: replay(.lru, capacity: .max / 2, meter: meter)
            )
        }
    }

    extension CacheSize {
        /// The bytes of all objects.
        fileprivate static let all: CacheSize = CacheSize.curve[CacheSize.curve.count - 1]
    }

    /// The hit ratios of one policy at one size, relative to all requests that a cache looks up.
    struct ReplayCell: Sendable {
        let policy: ReplayPolicy
        let size: CacheSize
        /// Bytes of the whole cache, also if only a sample was replayed.
        let capacity: Int
        let objectHitRatio: Double
        let byteHitRatio: Double
        /// The share of requests that find a stale copy.
        let expiredRatio: Double
    }

    /// Converts ratios of the replayed requests to ratios of all requests that a cache looks up.
    struct ReplayScale: Sendable {
        /// The share of replayed requests among all that were looked up, and the same for their bytes.
        let objectShare: Double
        let byteShare: Double
        /// The expected number of requests in the sample; the actual number without a sample.
        private let expectedRequests: Double
        /// The share of the input's objects that is replayed.
        let rate: Double
        /// The share of all objects, of which a recorded trace may have only some.
        let share: Double
        /// Bytes of all objects.
        let workingSet: Int

        init(_ input: InputReader.Input) {
            let trace = input.trace
            rate = input.rate
            share = input.rate * input.recorded
            workingSet = input.whole(trace.uniqueBytes)
            // The account is of the whole input, so the requests that were cut are in both terms of each share.
            let stored = Double(max(0, input.account.lookups - input.account.unstored.total))
            objectShare = stored / Double(max(1, input.account.lookups))
            let weight = input.cut > 0 ? stored / Double(max(1, trace.requests.count)) : 1 / rate
            let bytes = Double(trace.totalBytes) * weight
            let all = bytes + Double(input.account.unstoredBytes)
            byteShare = all > 0 ? bytes / all : 0
            // Only requests of the sample are counted as cut.
            expectedRequests = rate < 1 ? rate * stored - Double(input.cut) : Double(trace.requests.count)
        }

        /// A sample may have a few too many or too few of the most popular objects, which would hit in a cache of any
        /// size. Requests beyond the expected number are subtracted from its hits, and missing ones are added
        /// (SHARDS-adj, Waldspurger et al. 2015).
        func cell(_ policy: ReplayPolicy, size: CacheSize, capacity: Int, result: HitRateResult) -> ReplayCell {
            let isSample = rate < 1 && expectedRequests > 0
            let requests = isSample ? expectedRequests : Double(result.requests)
            let objects =
                isSample
                ? min(max(1 - Double(result.requests - result.hits) / expectedRequests, 0), 1) : result.objectHitRatio
            // Of the same requests as the hits, so that together they are never more than all.
            let expired = requests > 0 ? min(Double(result.revalidations) / requests, 1 - objects) : 0
            return ReplayCell(
                policy: policy,
                size: size,
                capacity: capacity,
                objectHitRatio: objects * objectShare,
                byteHitRatio: result.byteHitRatio * byteShare,
                expiredRatio: expired * objectShare
            )
        }
    }

    /// What decides what leaves a full cache: a policy, or a bound that knows the future.
    struct ReplayPolicy: Sendable, Hashable {
        enum Form: Sendable, Hashable {
            case policy(EvictionStrategy)
            case bound(BeladyBound.Rule)
        }

        /// The name on the command line and in the results.
        let name: String
        let form: Form

        /// All policies, the library's default first and the bounds last.
        static let all: [ReplayPolicy] =
            [ReplayPolicy(name: "density", form: .policy(.memory))]
            + [EvictionStrategy.lru, .sieve, .s3fifo].map { ReplayPolicy(name: $0.description, form: .policy($0)) }
            + [ReplayPolicy(name: "w-tinylfu", form: .policy(.wtinylfu))]
            + [EvictionStrategy.gdsf, .fifo, .disk].map { ReplayPolicy(name: $0.description, form: .policy($0)) }
            + [BeladyBound.Rule.furthest, .largest].map { ReplayPolicy(name: $0.description, form: .bound($0)) }

        /// Reads names separated by commas, each once; `all` stands for all of them.
        static func list(_ text: String) throws(CommandFailure) -> [ReplayPolicy] {
            var policies: [ReplayPolicy] = []
            for word in text.split(separator: ",", omittingEmptySubsequences: false) {
                let found = word == "all" ? all : all.filter { $0.name == word }
                if found.isEmpty {
                    let names = all.map(\.name).joined(separator: ", ")
                    throw .usage("there is no policy '\(word)'; the policies are \(names), and all")
                }
                policies += found.filter { !policies.contains($0) }
            }
            return policies
        }

        /// Whether it knows the future.
        var isBound: Bool {
            if case .bound = form { return true }
            return false
        }
    }
#endif
