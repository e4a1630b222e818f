// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if !canImport(Darwin)
    internal import Foundation

    /// The queue of a session's delegate, which holds Foundation back while too much lies in it.
    ///
    /// Foundation on Linux reads from the network as fast as it comes and adds an operation for each 16 KiB, without a bound: over a
    /// fast link hundreds of megabytes wait in memory for a delegate that writes them to a file. It adds them on the queue that it
    /// reads on, though, so while ``addOperation(_:)`` does not return nothing is read, and the servers wait.
    ///
    /// All sessions of the process are read on that one queue, and tasks are made and begun on it, on threads of the cooperative pool
    /// too. So nothing is held back but for what the delegate itself has yet to do, which is at most a write to a file, and never for
    /// a reader: that would have to wait for a thread that waits for it.
    ///
    /// Proof: the operation queue is thread-safe by itself, and what is added here changes under `condition` alone.
    final class DelegateQueue: OperationQueue, @unchecked Sendable {
        /// How many operations may wait, of 16 KiB at most each.
        private static let longest = 128
        /// For how long one operation is held back.
        private static let patience = 0.1

        private let condition = NSCondition()
        private var waiting = 0
        /// The delegate has done nothing for so long that it is not waited for until it does.
        private var isStuck = false

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
                    self.isStuck = false
                    self.condition.broadcast()
                }
            }
        }

        private func hold() {
            condition.withLock {
                guard waiting >= DelegateQueue.longest, !isStuck else { return }
                let end = Date(timeIntervalSinceNow: DelegateQueue.patience)
                while waiting >= DelegateQueue.longest {
                    guard condition.wait(until: end) else {
                        isStuck = true
                        return
                    }
                }
            }
        }
    }
#endif
