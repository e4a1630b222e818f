// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if !canImport(Darwin)
    internal import Foundation
    private import Synchronization

    /// The queue of a session's delegate, which holds the session back while too much lies in it.
    ///
    /// Foundation on Linux reads from the network as fast as it comes and adds an operation for each 16 KiB, without a bound: over a
    /// fast link hundreds of megabytes wait in memory for a delegate that writes them to a file. It adds them on the queue that it
    /// reads on, though, so while ``addOperation(_:)`` does not return nothing is read, and the server waits.
    ///
    /// All exchanges of a session are read on one queue. One that is shared is therefore held back for what the delegate itself has yet
    /// to do, which is at most a write to a file, and never for a reader; one that has a single exchange also while its reader is behind.
    final class DelegateQueue: OperationQueue, @unchecked Sendable {
        // Proof: the operation queue is thread-safe by itself, and what is added here changes under `condition` alone.

        /// How many operations may wait, of 16 KiB at most each.
        private static let longest = 128
        /// For how long one operation is held back; after it what comes goes to the spill file, and no timeout of the session's has
        /// taken a slow reader for a dead server.
        private static let patience = 2.0
        /// How many sessions may be held back for their readers at once: each takes a thread, of which there is an end.
        private static let mostHeld = 64
        private static let held = Mutex(0)

        private let condition = NSCondition()
        private var waiting = 0
        /// Whether the session's only exchange has more than its reader can take soon; nil where there are several, and once it is over.
        private var isFull: (@Sendable () -> Bool)?

        override init() {
            super.init()
            name = "holdfast.url-session"
            maxConcurrentOperationCount = 1
            qualityOfService = .userInitiated
        }

        override func addOperation(_ block: @Sendable @escaping () -> Void) {
            // What runs on this queue cannot wait for it.
            if OperationQueue.current !== self { hold() }
            condition.withLock { waiting += 1 }
            super.addOperation {
                block()
                self.condition.withLock {
                    self.waiting -= 1
                    self.condition.broadcast()
                }
            }
        }

        /// From now on the session, which has one exchange alone, is held back while that says that it is full.
        func holdBack(while isFull: @escaping @Sendable () -> Bool) {
            condition.withLock { self.isFull = isFull }
        }

        /// The reader of the only exchange has taken something.
        func noteRead() {
            condition.withLock { condition.broadcast() }
        }

        /// The only exchange is over: what still comes is for nobody.
        func letGo() {
            condition.withLock {
                isFull = nil
                condition.broadcast()
            }
        }

        private func hold() {
            condition.lock()
            defer { condition.unlock() }
            guard mustWait else { return }
            let isCounted =
                isFull == nil
                || DelegateQueue.held.withLock { held in
                    guard held < DelegateQueue.mostHeld else { return false }
                    held += 1
                    return true
                }
            let countsBack = isCounted && isFull != nil
            defer { if countsBack { DelegateQueue.held.withLock { $0 -= 1 } } }
            let end = Date(timeIntervalSinceNow: DelegateQueue.patience)
            while waiting >= DelegateQueue.longest || isCounted && isFull?() == true {
                guard condition.wait(until: end) else { return }
            }
        }

        private var mustWait: Bool { waiting >= DelegateQueue.longest || isFull?() == true }
    }
#endif
