// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore

    /// Runs tasks on one event loop, so that what they do with its channels needs no hop.
    ///
    /// Hand it to `Task(executorPreference:)`. What runs there must not block: all connections of the loop would wait.
    package final class EventLoopExecutor: TaskExecutor {
        /// The loop.
        package let eventLoop: any EventLoop

        /// An executor for this loop.
        package init(_ eventLoop: any EventLoop) {
            self.eventLoop = eventLoop
        }

        package func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            eventLoop.execute {
                job.runSynchronously(on: self.asUnownedTaskExecutor())
            }
        }
    }
#endif
