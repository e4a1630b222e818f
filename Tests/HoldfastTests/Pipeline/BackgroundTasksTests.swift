// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Dispatch
import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Background work after a call")
struct BackgroundTasksTests {
    @Test("Draining waits for running work and for work started meanwhile, and returns at once if there is none")
    func drain() async throws {
        let tasks = BackgroundTasks()
        await tasks.drain()
        let gate = CountWatch()
        let ended = Atomic(0)
        _ = tasks.spawn {
            try? await gate.wait(for: 1)
            _ = tasks.spawn { ended.add(1, ordering: .relaxed) }
            ended.add(1, ordering: .relaxed)
        }
        #expect(tasks.count == 1)
        gate.increment()
        await tasks.drain()
        #expect(ended.load(ordering: .relaxed) == 2)
        #expect(tasks.count == 0)
    }

    @Test("A cancelled drain returns at once, and the work goes on", arguments: [false, true])
    func cancelledDrain(isCancelledFirst: Bool) async throws {
        let tasks = BackgroundTasks()
        let gate = CountWatch()
        _ = tasks.spawn { try? await gate.wait(for: 1) }
        let waiting = Task {
            if isCancelledFirst { withUnsafeCurrentTask { $0?.cancel() } }
            await tasks.drain()
        }
        if !isCancelledFirst {
            while tasks.waiterCount == 0 { await Task.yield() }
            waiting.cancel()
        }
        await waiting.value
        #expect(tasks.count == 1)
        gate.increment()
        await tasks.drain()
        #expect(tasks.count == 0 && tasks.waiterCount == 0)
    }

    @Test("Exchanges and refreshes run on the executor that the configuration names")
    func executor() async throws {
        let executor = QueueExecutor()
        let answer = ScriptedTransport.Step.respond(
            200,
            ["Cache-Control": "max-age=10, stale-while-revalidate=60"],
            body: "x"
        )
        let bench = CacheBench(ScriptedTransport([answer, answer])) { $0.executor = executor }
        try await bench.load()
        let forExchange = executor.jobs
        #expect(forExchange > 0)
        bench.clock.advance(by: .seconds(20))
        #expect(try await bench.load().source == .stale)
        await bench.pipeline.drain()
        #expect(executor.jobs > forExchange)
        #expect(bench.sends == 2)
    }
}

/// Runs jobs one after another on a queue and counts them.
private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "test")
    private let count = Atomic(0)

    var jobs: Int { count.load(ordering: .relaxed) }

    func enqueue(_ job: consuming ExecutorJob) {
        count.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
