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

/// The threads on which a store makes its blocking calls, one a lane: what is in a lane comes one after the other, and none
/// waits behind another lane.
final class IOThreads: Sendable {
    /// Which thread.
    enum Lane: Int, Sendable, CaseIterable {
        /// What makes room and removes files, one step after the other.
        case changes
        /// Reads that have to wait for the device.
        case reads
        /// Writes that are too long or too slow for a caller's thread.
        case writes
        /// What makes bytes durable, which may take very long.
        case syncs
    }

    private let threads: [IOThread]

    /// Starts the threads.
    ///
    /// - Throws: `.io` when the system gives none.
    init() throws(StoreError) {
        var threads: [IOThread] = []
        do throws(StoreError) {
            for _ in Lane.allCases { threads.append(try IOThread()) }
        } catch {
            for thread in threads { thread.stop() }
            throw error
        }
        self.threads = threads
    }

    deinit {
        stop()
    }

    /// Runs `work` on a thread and waits for what it returns.
    ///
    /// A task that is cancelled does not wait for a read: it gets `.cancelled` at once, and what the read brings is dropped.
    /// A change is waited for, since it happens.
    ///
    /// - Parameters:
    ///   - isUrgent: whether it is taken though the queue is full; for what frees space or must not be lost.
    func run<Value: Sendable>(
        _ lane: Lane,
        isUrgent: Bool = false,
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let answer = OneAnswer<Value>()
        guard lane == .reads else {
            return try await answer.value { enqueue(lane, isUrgent: isUrgent, work, answer) }
        }
        let result: Result<Value, StoreError> = await withTaskCancellationHandler {
            do throws(StoreError) {
                return .success(try await answer.value { enqueue(lane, isUrgent: isUrgent, work, answer) })
            } catch {
                return .failure(error)
            }
        } onCancel: {
            answer.give(.failure(StoreError(.cancelled, "The task was cancelled while it waited for the disk.")))
        }
        return try result.get()
    }

    private func enqueue<Value: Sendable>(
        _ lane: Lane,
        isUrgent: Bool,
        _ work: @escaping @Sendable () throws(StoreError) -> Value,
        _ answer: OneAnswer<Value>
    ) {
        let outcome = thread(lane).enqueue(isUrgent: isUrgent) {
            do throws(StoreError) {
                answer.give(.success(try work()))
            } catch {
                answer.give(.failure(error))
            }
        }
        switch outcome {
        case .taken: return
        case .full:
            answer.give(.failure(StoreError(.resting, "Too many operations wait for the disk; treat this as a miss.")))
        case .stopped:
            answer.give(.failure(StoreError(.closed, "The store is closed; open a new one.")))
        }
    }

    /// Runs `work` on a thread some time later.
    ///
    /// - Returns: false when the threads have been stopped; then nothing runs.
    @discardableResult
    func later(_ lane: Lane, _ work: @escaping @Sendable () -> Void) -> Bool {
        thread(lane).enqueue(isUrgent: true, work) == .taken
    }

    /// Lets the threads finish what they were given and end; nothing waits for that. Idempotent.
    func stop() {
        for thread in threads { thread.stop() }
    }

    private func thread(_ lane: Lane) -> IOThread {
        threads[lane.rawValue]
    }
}

/// One thread and its queue.
private final class IOThread: Sendable {
    enum Outcome: Sendable {
        case taken
        case full
        case stopped
    }

    private static let bound = 1_024

    private struct Queue {
        var work: [@Sendable () -> Void] = []
        var isStopped = false
    }

    private let queue = Mutex(Queue())
    // Proof: both point to memory that is initialised before the thread starts and freed in deinit, when neither the thread, which
    // holds the object while it runs, nor anyone else can reach it; POSIX makes their use from many threads safe.
    nonisolated(unsafe) private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    nonisolated(unsafe) private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() throws(StoreError) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        let context = Unmanaged.passRetained(self).toOpaque()
        guard start(context) else {
            Unmanaged<IOThread>.fromOpaque(context).release()
            throw StoreError(.io, "The system started no thread for disk work; lower the number of threads in use.")
        }
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func enqueue(isUrgent: Bool, _ work: @escaping @Sendable () -> Void) -> Outcome {
        let outcome = queue.withLock { queue -> Outcome in
            if queue.isStopped { return .stopped }
            if !isUrgent, queue.work.count >= Self.bound { return .full }
            queue.work.append(work)
            return .taken
        }
        if outcome == .taken { wake() }
        return outcome
    }

    func stop() {
        queue.withLock { $0.isStopped = true }
        wake()
    }

    private func wake() {
        // Signalled under the pthread lock, under which the thread looks at the queue before it waits: no wake-up is lost.
        pthread_mutex_lock(mutex)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    private func start(_ context: UnsafeMutableRawPointer) -> Bool {
        #if canImport(Glibc)
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, { IOThread.main($0) }, context)
            if result == 0 { pthread_detach(thread) }
            return result == 0
        #else
            var thread: pthread_t?
            let result = pthread_create(&thread, nil, { IOThread.main($0) }, context)
            if result == 0, let thread { pthread_detach(thread) }
            return result == 0
        #endif
    }

    private static func main(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context else { return nil }
        // The thread keeps the object until it ends; it holds no store, so a dropped store can stop it.
        let thread = Unmanaged<IOThread>.fromOpaque(context).takeRetainedValue()
        while var batch = thread.next() {
            // Taken out one by one, so that what a step holds is let go as soon as it has run.
            while let work = batch.popLast() { work() }
        }
        return nil
    }

    /// Waits for work; the first step is the last of the array. Nil: the thread should end.
    private func next() -> [@Sendable () -> Void]? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            let (batch, isStopped) = queue.withLock { queue in
                let batch = queue.work
                queue.work = []
                return (batch, queue.isStopped)
            }
            if !batch.isEmpty { return batch.reversed() }
            if isStopped { return nil }
            pthread_cond_wait(condition, mutex)
        }
    }
}
