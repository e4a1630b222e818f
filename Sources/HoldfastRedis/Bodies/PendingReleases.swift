// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// Removals of abandoned writes in progress; whoever needs room waits until they are done.
    final class PendingReleases: Sendable {
        private let tasks = Mutex<(next: UInt64, running: [UInt64: Task<Void, Never>])>((0, [:]))

        /// Removes what a writer has written from the server, in its own task.
        func add(_ writer: String, body: String, chunks: Int, in space: SharedSpace) {
            tasks.withLock { tasks in
                let number = tasks.next
                tasks.next += 1
                tasks.running[number] = Task { [self] in
                    _ = try? await space.run(.release, with: writer, body, "\(chunks)")
                    self.tasks.withLock { tasks in tasks.running[number] = nil }
                }
            }
        }

        /// Waits until everything abandoned so far is removed, or the server does not answer.
        func settle() async {
            for task in tasks.withLock({ Array($0.running.values) }) { await task.value }
        }
    }
#endif
