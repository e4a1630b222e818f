// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The threads on which a store makes its blocking calls. No lane waits for another; work in a lane runs in order, except for
/// reads, of which several run at once.
final class IOThreads: Sendable {
    /// Which thread.
    enum Lane: Int, Sendable, CaseIterable {
        /// What makes room and removes files, one step after another.
        case changes
        /// Reads that must wait for the device, on as many threads as there are waiting reads, up to ``IOThreads/readers``.
        case reads
        /// Writes that are too long or too slow for a caller's thread.
        case writes
        /// What makes bytes durable, which may take very long.
        case syncs
    }

    /// How many reads run at once: eight made 20 % fewer than four on two cores with a fast device.
    static let readers = 4

    private let lanes: [WorkQueue]

    /// Starts a thread for each lane.
    ///
    /// - Throws: `.io` if the system starts none.
    init() throws(StoreError) {
        var lanes: [WorkQueue] = []
        do throws(StoreError) {
            for lane in Lane.allCases { lanes.append(try WorkQueue(width: lane == .reads ? Self.readers : 1)) }
        } catch {
            for lane in lanes { lane.stop() }
            throw error
        }
        self.lanes = lanes
    }

    deinit {
        stop()
    }

    /// Runs `work` on a thread and waits for its result.
    ///
    /// A cancelled task does not wait for a read: it gets `.cancelled` at once, and the read's result is dropped. It does wait for
    /// a change, since the change happens anyway.
    ///
    /// - Parameters:
    ///   - isUrgent: whether it is accepted although the queue is full, and a read is waited for although the task is cancelled; for
    ///     what frees space or must not be lost, and for reads that a change depends on.
    func run<Value: Sendable>(
        _ lane: Lane,
        isUrgent: Bool = false,
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let promise = Promise<Value>()
        let outcome: Result<Value, StoreError>
        if lane == .reads, !isUrgent {
            outcome = await withTaskCancellationHandler {
                await promise.value { enqueue(lane, as: .bounded, work: work, promise: promise) }
            } onCancel: {
                promise.fulfill(
                    .failure(StoreError(.cancelled, "The task was cancelled while it waited for the disk."))
                )
            }
        } else {
            outcome = await promise.value {
                enqueue(lane, as: isUrgent ? .urgent : .bounded, work: work, promise: promise)
            }
        }
        return try outcome.get()
    }

    private func enqueue<Value: Sendable>(
        _ lane: Lane,
        as admission: WorkQueue.Admission,
        work: @escaping @Sendable () throws(StoreError) -> Value,
        promise: Promise<Value>
    ) {
        let outcome = lanes[lane.rawValue].enqueue(as: admission) {
            do throws(StoreError) {
                promise.fulfill(.success(try work()))
            } catch {
                promise.fulfill(.failure(error))
            }
        }
        switch outcome {
        case .taken: return
        case .full:
            promise.fulfill(
                .failure(
                    StoreError(.temporarilyUnavailable, "Too many operations wait for the disk; treat this as a miss.")
                )
            )
        case .stopped:
            promise.fulfill(.failure(.closed))
        }
    }

    /// Runs `work` on a thread some time later.
    ///
    /// - Returns: false if the threads have been stopped; then nothing runs.
    @discardableResult
    func later(_ lane: Lane, work: @escaping @Sendable () -> Void) -> Bool {
        lanes[lane.rawValue].enqueue(as: .own, work: work) == .taken
    }

    /// Gives the other threads a moment; for one of the store's threads that waits for another.
    static func pause() {
        usleep(50)
    }

    /// Lets the threads finish their work and end, without waiting for that. Idempotent.
    func stop() {
        for lane in lanes { lane.stop() }
    }

    // MARK: The end

    /// Accepts no more work of callers in a lane: ``run(_:isUrgent:_:)`` throws `.closed`.
    func refuseCallers(_ lane: Lane) { lanes[lane.rawValue].refuseCallers() }

    /// Waits until everything queued in a lane so far is done, and runs `work` there after it.
    ///
    /// - Parameter isLast: whether the lane accepts nothing after it.
    func drain(_ lane: Lane, isLast: Bool = false, finally work: @escaping @Sendable () -> Void = {}) async {
        let promise = Promise<Void>()
        _ = await promise.value {
            let outcome = lanes[lane.rawValue].enqueue(as: isLast ? .last : .own, isAlone: true) {
                work()
                promise.fulfill(.success(()))
            }
            if outcome != .taken { promise.fulfill(.success(())) }
        }
    }
}

/// A queue and the threads that work on it: one from the beginning, more if work waits and no thread is idle.
private final class WorkQueue: Sendable {
    enum Outcome: Sendable {
        case taken
        case full
        case stopped
    }

    /// Which work is accepted.
    enum Admission: Sendable {
        /// A caller's, unless the queue is full.
        case bounded
        /// A caller's, even then.
        case urgent
        /// The store's own, until the queue is stopped.
        case own
        /// The store's own, and nothing after it.
        case last
    }

    private static let bound = 1_024

    private struct Step {
        let work: @Sendable () -> Void
        /// Whether it waits for all before it, and all after it wait for it.
        let isAlone: Bool
    }

    private struct Queue {
        /// nil: taken.
        private var steps: [Step?] = []
        /// How many of `steps` were taken. Their places are dropped by the half, so that taking one does not copy the rest.
        private var taken = 0
        var threads = 1
        var idle = 0
        var working = 0
        var isAlone = false
        var refusesCallers = false
        var isStopped = false

        var count: Int { steps.count - taken }
        /// Whether there is no more work and will not be any.
        var isOver: Bool { isStopped && count == 0 }

        var isNextAlone: Bool { count > 0 && steps[taken]?.isAlone == true }

        mutating func append(_ step: Step) { steps.append(step) }

        /// The next step that may start now.
        mutating func take() -> Step? {
            guard count > 0, !isAlone, !isNextAlone || working == 0, let step = steps[taken] else { return nil }
            // What it holds is released by the thread that runs it, and not under the lock when its place is dropped.
            steps[taken] = nil
            taken += 1
            if taken == steps.count {
                steps.removeAll(keepingCapacity: steps.count <= WorkQueue.bound)
                taken = 0
            } else if taken > WorkQueue.bound {
                steps.removeFirst(taken)
                taken = 0
            }
            working += 1
            isAlone = step.isAlone
            return step
        }
    }

    private let width: Int
    private let queue = Mutex(Queue())
    // Proof: both point to memory that is initialized before a thread starts and freed in deinit, when neither the threads, which
    // hold the object while they run, nor anyone else can reach it; POSIX makes their use from many threads safe.
    nonisolated(unsafe) private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    nonisolated(unsafe) private let condition: UnsafeMutablePointer<pthread_cond_t>

    init(width: Int) throws(StoreError) {
        self.width = width
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        guard startThread() else {
            throw StoreError(
                .io,
                "The system could not start a thread for disk work; lower the number of threads in use."
            )
        }
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func enqueue(
        as admission: Admission,
        isAlone: Bool = false,
        work: @escaping @Sendable () -> Void
    ) -> Outcome {
        let (outcome, wantsThread) = queue.withLock { queue -> (Outcome, Bool) in
            let isOfCaller = admission == .bounded || admission == .urgent
            if queue.isStopped || queue.refusesCallers && isOfCaller { return (.stopped, false) }
            if admission == .bounded, queue.count >= Self.bound { return (.full, false) }
            if admission == .last { queue.isStopped = true }
            queue.append(Step(work: work, isAlone: isAlone))
            let wantsThread = queue.count > queue.idle && queue.threads < width
            if wantsThread { queue.threads += 1 }
            return (.taken, wantsThread)
        }
        // If the system starts no more threads, the existing ones do the work.
        if wantsThread, !startThread() { queue.withLock { $0.threads -= 1 } }
        if outcome == .taken { wake() }
        return outcome
    }

    func refuseCallers() { queue.withLock { $0.refusesCallers = true } }

    func stop() {
        queue.withLock { $0.isStopped = true }
        wake(all: true)
    }

    private func wake(all: Bool = false) {
        // Signaled under the pthread lock; a thread checks the queue under that lock before it waits, so no wake-up is lost.
        pthread_mutex_lock(mutex)
        if all { pthread_cond_broadcast(condition) } else { pthread_cond_signal(condition) }
        pthread_mutex_unlock(mutex)
    }

    private func startThread() -> Bool {
        let context = Unmanaged.passRetained(self).toOpaque()
        #if canImport(Glibc)
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, { WorkQueue.main($0) }, context)
            if result == 0 { pthread_detach(thread) }
        #else
            var thread: pthread_t?
            let result = pthread_create(&thread, nil, { WorkQueue.main($0) }, context)
            if result == 0, let thread { pthread_detach(thread) }
        #endif
        if result != 0 { Unmanaged<WorkQueue>.fromOpaque(context).release() }
        return result == 0
    }

    private static func main(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context else { return nil }
        // A thread keeps the object until it ends; the object does not hold the store, so a released store can stop its threads.
        let lane = Unmanaged<WorkQueue>.fromOpaque(context).takeRetainedValue()
        while lane.doNext() {}
        return nil
    }

    /// Waits for a step and does it. Returns false if the thread should end.
    private func doNext() -> Bool {
        guard let wasAlone = runNext() else { return false }
        let wakesAll = queue.withLock { queue in
            queue.working -= 1
            queue.isAlone = false
            // Others wait for this only if one of the two steps runs alone, or to end; this thread takes the next step itself.
            return width > 1 && (wasAlone || queue.isNextAlone || queue.isOver)
        }
        if wakesAll { wake(all: true) }
        return true
    }

    /// Runs the next step; nil if there will be none, otherwise whether it runs alone.
    ///
    /// The step is released here, before it counts as done: it may hold the last reference to an open file, which a barrier waits for.
    private func runNext() -> Bool? {
        guard let step = next() else { return nil }
        step.work()
        return step.isAlone
    }

    private func next() -> Step? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            let (step, isOver) = queue.withLock { queue in
                let step = queue.take()
                if step == nil { queue.idle += 1 }
                return (step, queue.isOver)
            }
            if let step { return step }
            if isOver { return nil }
            pthread_cond_wait(condition, mutex)
            queue.withLock { $0.idle -= 1 }
        }
    }
}

/// A result that arrives once, from a thread or from the cancellation of the waiting task, whichever is first.
final class Promise<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, StoreError>

    private enum State {
        case open
        case waiting(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
        case taken
    }

    private let state = Mutex(State.open)

    /// Asks, and waits for the promise; call it once.
    func value(_ ask: () -> Void) async -> Outcome {
        await withCheckedContinuation { continuation in
            let early: Outcome? = state.withLock { state in
                if case .given(let outcome) = state {
                    state = .taken
                    return outcome
                }
                state = .waiting(continuation)
                return nil
            }
            if let early { return continuation.resume(returning: early) }
            ask()
        }
    }

    /// Answers; later answers are ignored.
    func fulfill(_ outcome: Outcome) {
        let waiting: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .given(outcome)
                return nil
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .given, .taken:
                return nil
            }
        }
        waiting?.resume(returning: outcome)
    }
}
