// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Replays a trace through policies at sizes, several at a time.
    struct ReplayRun: Sendable {
        let trace: RequestTrace
        let scale: ReplayScale
        let policies: [ReplayPolicy]
        let sizes: [CacheSize]
        let seed: UInt64
        let console: Console

        /// What came of it.
        struct Outcome: Sendable {
            /// By policy, then by size, in the order asked for.
            let cells: [ReplayCell]
            /// A cache without a bound.
            let ceiling: ReplayCell
            /// LRU at every size, where one pass gave it.
            let stack: StackDistances?
        }

        /// Everything, on threads that may be kept busy.
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
                        try await BlockingWork.run { (index, try cell(policy, size, bound, stack, meter)) }
                    }
                }
                for _ in 0..<max(1, width) { begin() }
                for try await (index, cell) in group {
                    cells[index] = cell
                    begin()
                }
            }
            let ceiling = try await BlockingWork.run { try self.ceiling(meter) }
            return Outcome(cells: cells.compactMap { $0 }, ceiling: ceiling, stack: stack)
        }

        static let lru = ReplayPolicy(name: "lru", form: .policy(.lru))
        static let unbounded = ReplayPolicy(name: "unbounded", form: .policy(.lru))

        private func cell(
            _ policy: ReplayPolicy,
            _ size: CacheSize,
            _ bound: BeladyBound?,
            _ stack: StackDistances?,
            _ meter: ProgressMeter
        ) throws -> ReplayCell {
            let whole = size.bytes(uniqueBytes: Int(clamping: Int64(Double(trace.uniqueBytes) / scale.rate)))
            let capacity = size.bytes(uniqueBytes: trace.uniqueBytes, rate: scale.rate)
            let result: HitRateResult
            switch policy.form {
            case .bound(let rule):
                result =
                    bound?.replay(rule, capacity: capacity) ?? HitRateResult(policy: policy.name, capacity: capacity)
                meter.advance(by: trace.requests.count)
            case .policy:
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
                result = try replay(policy, capacity, meter)
            }
            return scale.cell(policy, size, whole, result)
        }

        private func replay(_ policy: ReplayPolicy, _ capacity: Int, _ meter: ProgressMeter) throws -> HitRateResult {
            guard case .policy(let strategy) = policy.form else {
                return HitRateResult(policy: policy.name, capacity: capacity)
            }
            var simulator = HitRateSimulator()
            simulator.add(strategy, capacity: capacity, seed: seed)
            var before = 0
            try simulator.replay(trace) { done in
                try Task.checkCancellation()
                meter.advance(by: done - before)
                before = done
            }
            return simulator.results.first ?? HitRateResult(policy: policy.name, capacity: capacity)
        }

        private func ceiling(_ meter: ProgressMeter) throws -> ReplayCell {
            let size = CacheSize.all
            return scale.cell(Self.unbounded, size, .max, try replay(Self.unbounded, .max / 2, meter))
        }
    }

    extension CacheSize {
        /// The bytes of all objects.
        fileprivate static let all: CacheSize = CacheSize.curve[CacheSize.curve.count - 1]
    }
#endif
