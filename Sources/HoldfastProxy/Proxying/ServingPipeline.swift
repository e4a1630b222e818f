// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    private import Synchronization

    /// The current pipeline for requests, which can be replaced.
    final class ServingPipeline: Sendable {
        /// A pipeline, kept as long as a request needs it.
        final class Held: Sendable {
            let pipeline: Pipeline

            init(_ pipeline: Pipeline) {
                self.pipeline = pipeline
            }
        }

        private let first: Held
        /// Most pipelines are never replaced, so their requests need no lock.
        private let isReplaced = Atomic(false)
        private let latest: Mutex<Held>

        init(_ pipeline: Pipeline) {
            let held = Held(pipeline)
            first = held
            latest = Mutex(held)
        }

        /// The pipeline for a whole request that begins now.
        var current: Held { isReplaced.load(ordering: .acquiring) ? latest.withLock { $0 } : first }

        /// Uses another pipeline for requests that begin from now on.
        func replace(with pipeline: Pipeline) {
            latest.withLock { $0 = Held(pipeline) }
            isReplaced.store(true, ordering: .releasing)
        }
    }
#endif
