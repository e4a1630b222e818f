// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import Synchronization

/// A clock that its driver moves from one sleeper to the next.
///
/// Sleepers wake one at a time, in the order of their deadlines, then in the order in which they began to sleep. Unlike
/// `ManualClock` it keeps them in a heap, for tens of thousands at once.
final class SimulationClock: HoldfastClock {
    private struct State {
        var now: Duration = .zero
        var nextID: UInt64 = 0
        var queue = EventQueue<UInt64>()
        var continuations: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var cancelled: Set<UInt64> = []

        /// The deadline of the next task that is still sleeping.
        mutating func nextDeadline() -> Duration? {
            while let next = queue.next {
                if continuations[next.payload] != nil { return next.time }
                _ = queue.removeNext()
            }
            return nil
        }
    }

    private static let start = Timestamp(secondsSinceEpoch: 1_700_000_000)
    private let state = Mutex(State())

    var now: MonotonicInstant {
        MonotonicInstant(sinceOrigin: state.withLock { $0.now })
    }

    var timestamp: Timestamp {
        SimulationClock.start.advanced(by: now.sinceOrigin)
    }

    /// When the next sleeper wakes, from the clock's origin; nil if there are none.
    var nextDeadline: Duration? {
        state.withLock { $0.nextDeadline() }
    }

    /// How many tasks are sleeping.
    var sleeperCount: Int {
        state.withLock { $0.continuations.count }
    }

    /// Moves the clock to `time` without waking anyone; never back.
    func move(to time: Duration) {
        state.withLock { $0.now = max($0.now, time) }
    }

    /// Moves the clock to the next sleeper's deadline and wakes it; does nothing if there are none.
    func wakeNext() {
        let sleeper = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard state.nextDeadline() != nil, let next = state.queue.removeNext() else { return nil }
            state.now = max(state.now, next.time)
            return state.continuations.removeValue(forKey: next.payload)
        }
        sleeper?.resume()
    }

    func sleep(until deadline: MonotonicInstant) async throws {
        try Task.checkCancellation()
        let id: UInt64? = state.withLock { state in
            guard deadline.sinceOrigin > state.now else { return nil }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return }
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.contains(id) { return true }
                    state.continuations[id] = continuation
                    state.queue.add(id, at: deadline.sinceOrigin)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.continuations.removeValue(forKey: id)
                if sleeper == nil { state.cancelled.insert(id) }
                return sleeper
            }
            sleeper?.resume(throwing: CancellationError())
        }
    }
}

/// Future events, removed in the order of their times, then in the order in which they were added.
///
/// A binary heap: adding and removing cost O(log n).
struct EventQueue<Payload> {
    private struct Item {
        let time: Duration
        let sequence: UInt64
        let payload: Payload

        func comes(before other: Item) -> Bool {
            (time, sequence) < (other.time, other.sequence)
        }
    }

    private var items: [Item] = []
    private var nextSequence: UInt64 = 0

    var isEmpty: Bool { items.isEmpty }

    /// The time and content of the next event; nil if there are none.
    var next: (time: Duration, payload: Payload)? {
        items.first.map { ($0.time, $0.payload) }
    }

    mutating func add(_ payload: Payload, at time: Duration) {
        items.append(Item(time: time, sequence: nextSequence, payload: payload))
        nextSequence += 1
        var child = items.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard items[child].comes(before: items[parent]) else { break }
            items.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeNext() -> (time: Duration, payload: Payload)? {
        guard let first = items.first else { return nil }
        let last = items.removeLast()
        if !items.isEmpty {
            items[0] = last
            sink()
        }
        return (first.time, first.payload)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child].comes(before: items[least]) { least = child }
            }
            guard least != parent else { return }
            items.swapAt(parent, least)
            parent = least
        }
    }
}

/// Runs jobs only when its driver says so, one after another, on the driver's thread, in the order in which they arrived.
///
/// Tasks that have it as their preference stay on it through every await of code without an executor of its own. An unstructured
/// `Task` without the preference runs on the default executor, and the driver does not see it.
final class SimulationExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs what is queued, and what that queues, until nothing is left; call it from one thread at a time.
    func drain() {
        while true {
            let batch = jobs.withLock { jobs in
                let batch = jobs
                jobs.removeAll(keepingCapacity: true)
                return batch
            }
            if batch.isEmpty { return }
            for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}

/// Random numbers for simulations; the same seed gives the same numbers on every platform.
///
/// It only uses additions, multiplications, divisions and square roots, which IEEE 754 rounds alike everywhere; a C library's
/// logarithm may differ in its last digit between systems.
struct SimulationNumbers {
    private var generator: SplitMix64

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// A seed for another generator.
    mutating func seed() -> UInt64 {
        generator.next()
    }

    /// Uniform from 0 up to but not including 1.
    mutating func uniform() -> Double {
        generator.nextShare()
    }

    /// Exponentially distributed with this mean.
    mutating func exponential(mean: Double) -> Double {
        -mean * SimulationNumbers.logarithm(1 - uniform())
    }

    /// Normally distributed, by the polar method of Marsaglia and Bray (1964).
    mutating func normal(mean: Double, deviation: Double) -> Double {
        while true {
            let (x, y) = (2 * uniform() - 1, 2 * uniform() - 1)
            let square = x * x + y * y
            guard square > 0, square < 1 else { continue }
            return mean + deviation * x * (-2 * SimulationNumbers.logarithm(square) / square).squareRoot()
        }
    }

    /// The natural logarithm of a positive normal number, to a few units in the last place.
    static func logarithm(_ value: Double) -> Double {
        var (significand, exponent) = (value.significand, Double(value.exponent))
        if significand > 1.414_213_562_373_095_1 {
            significand /= 2
            exponent += 1
        }
        let ratio = (significand - 1) / (significand + 1)
        let square = ratio * ratio
        // ln m = 2 artanh((m − 1) / (m + 1)); its argument is at most 0.172, so twelve terms suffice for a Double.
        var sum = 0.0
        for term in stride(from: 23, through: 1, by: -2) {
            sum = sum * square + 1 / Double(term)
        }
        return exponent * 0.693_147_180_559_945_3 + 2 * ratio * sum
    }
}

extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// Like `.backoff(rules)`, with random numbers from one seed: the same calls in the same order get the same waits.
    public static func backoff(_ rules: RetryRules, seed: UInt64) -> BackoffRetrier.Factory {
        let seeds = SharedRandom(SplitMix64(seed: seed))
        return BackoffRetrier.factory(
            strategy: .exponential(rules),
            makeGenerator: { SplitMix64(seed: seeds.generator.next()) }
        )
    }
}
