// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import HoldfastStorage

/// The four runs: the same load through a bare client, with retries, with a cache as well, and from the disk left behind.
struct Scenario: Sendable {
    /// Where the calls go.
    let target: any Target
    /// The calls.
    let load: Load
    /// How many of them are in flight at once.
    let concurrency: Int
    /// The time everything goes by.
    let clock: any HoldfastClock
    /// Opens the disk cache; called twice, the second time after the first store was closed.
    let openStore: @Sendable () async throws -> any CacheStore

    /// Retries that outlast what the built-in origin does at its defaults: a call fails once in a billion.
    static let retries: RetryRules = {
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(20), cap: .milliseconds(500)), maxAttempts: 8)
        rules.throttlingBackoff = rules.backoff
        // A burst of failures may empty the budget; the retries then wait for tokens rather than give up.
        rules.parks = true
        return rules
    }()

    /// Makes the runs, in order.
    ///
    /// The store is opened before the first of them, so that a directory that cannot be used is found at once.
    ///
    /// - Throws: what `openStore` threw; `CancellationError`. The store is closed in any case.
    func run(on console: Console) async throws -> [RunResult] {
        let cold = HTTPCache(store: try await openStore())
        var results: [RunResult] = []
        do {
            try await cold.removeAll()
            results.append(try await replay("bare", console))
            results.append(try await replay("retries", retries: true, console))
            results.append(try await replay("cache+retries", retries: true, cache: cold, console))
        } catch {
            await cold.close()
            throw error
        }
        await cold.close()

        let warm = HTTPCache(store: try await openStore())
        do {
            let revalidates = target.revalidatesAfterRestart
            results.append(
                try await replay("from disk", retries: true, cache: warm, revalidatesFirst: revalidates, console)
            )
        } catch {
            await warm.close()
            throw error
        }
        await warm.close()
        return results
    }

    private func replay(
        _ name: String,
        retries: Bool = false,
        cache: HTTPCache? = nil,
        revalidatesFirst: Bool = false,
        _ console: Console
    ) async throws -> RunResult {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = target.attemptTimeout
        let connection = target.connect()
        let run = Run(
            pipeline: Pipeline(
                transport: connection.transport,
                cache: cache,
                retrierFactory: retries ? BackoffRetrier.factory(strategy: .exponential(Scenario.retries)) : .never,
                configuration: configuration
            ),
            target: target,
            load: load,
            concurrency: concurrency,
            revalidatesFirst: revalidatesFirst
        )
        let line = ProgressLine(on: console)
        defer { line.clear() }
        let count = load.calls.count
        let outcome = try await run.perform(
            ProgressMeter(total: count, on: line) { done in "\(name): \(done) of \(count) calls" }
        )
        return RunResult(name: name, outcome: outcome, traffic: connection.traffic(), cache: cache?.statistics)
    }
}
