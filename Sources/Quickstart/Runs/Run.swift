// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Replays a load through one pipeline and takes the time of each call.
struct Run: Sendable {
    /// What the calls go through.
    let pipeline: Pipeline
    /// Makes their requests.
    let target: any Target
    /// The calls.
    let load: Load
    /// How many of them are in flight at once.
    let concurrency: Int
    /// Whether the first call of each resource asks for revalidation.
    let revalidatesFirst: Bool

    /// What the callers saw.
    struct Outcome: Sendable, Equatable {
        /// The time of each call, from the request to the end of its body; in no order.
        var latencies: [Duration] = []
        /// Calls that ended in an error or a status of 500 or more.
        var failed = 0
        /// The time from the first call to the end of the last.
        var duration = Duration.zero
    }

    /// Makes every call once, `concurrency` at a time.
    ///
    /// - Throws: `CancellationError` only; what fails a call is counted.
    func perform(_ progress: ProgressMeter) async throws -> Outcome {
        let clock = pipeline.configuration.clock
        let queue = Queue(load.calls)
        let start = clock.now
        var outcome = Outcome()
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for _ in 0..<min(concurrency, load.calls.count) {
                group.addTask {
                    var part = Outcome()
                    while let call = queue.next() {
                        let began = clock.now
                        if try await !succeeds(call) { part.failed += 1 }
                        part.latencies.append(began.duration(to: clock.now))
                        progress.advance()
                    }
                    return part
                }
            }
            for try await part in group {
                outcome.latencies += part.latencies
                outcome.failed += part.failed
            }
        }
        outcome.duration = start.duration(to: clock.now)
        return outcome
    }

    private func succeeds(_ call: Call) async throws -> Bool {
        var options = CallOptions()
        if revalidatesFirst, call.isFirstOfResource { options.cache = .revalidate }
        do {
            let response = try await pipeline.send(target.request(for: call), options: options)
            for try await _ in response.body {}
            return response.status.rawValue < 500
        } catch {
            if Task.isCancelled { throw CancellationError() }
            return false
        }
    }

    /// Hands out the calls, each once, to whoever asks.
    private final class Queue: Sendable {
        private let calls: [Call]
        private let handedOut = Atomic<Int>(0)

        init(_ calls: [Call]) {
            self.calls = calls
        }

        func next() -> Call? {
            let index = handedOut.add(1, ordering: .relaxed).oldValue
            return index < calls.count ? calls[index] : nil
        }
    }
}
