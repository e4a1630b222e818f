// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A pipeline with a cache over an origin whose answers come in the order that a test chooses.
final class OrderBench: Sendable {
    let clock = ManualClock()
    let cache: HTTPCache
    /// Answers of an origin that waits until it is told whose turn it is.
    let gates: [CountWatch]
    let asked = CountWatch()
    let pipeline: Pipeline
    let transport: ScriptedTransport

    init(_ answers: [@Sendable (URLRequest) -> ScriptedTransport.Step], mode: CacheOptions.Mode = .private) {
        var cacheOptions = CacheOptions()
        cacheOptions.mode = mode
        cache = HTTPCache(store: MemoryStore(capacity: 1 << 20), options: cacheOptions)
        let gates = answers.map { _ in CountWatch() }
        self.gates = gates
        let asked = self.asked
        let numbers = AnswerNumbers()
        transport = ScriptedTransport { request in
            let number = numbers.next() - 1
            asked.increment()
            try await gates[number].wait(for: 1)
            return answers[number](request)
        }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        pipeline = Pipeline(transport: transport, cache: cache, configuration: configuration)
    }

    /// Begins a call and waits until its request is at the origin.
    func begin(
        _ request: URLRequest = .get(),
        _ directive: CacheDirective = .default,
        number: Int
    ) async throws -> Task<String, any Error> {
        var options = CallOptions()
        options.cache = directive
        let call = Task { [pipeline, options] in
            String(decoding: try await pipeline.send(request, options: options).body.collect(), as: UTF8.self)
        }
        try await asked.wait(for: number)
        return call
    }

    func end(_ number: Int, _ call: Task<String, any Error>) async throws -> String {
        gates[number - 1].increment()
        return try await call.value
    }

    func hit(_ request: URLRequest = .get()) async throws -> String? {
        var options = CallOptions()
        options.cache = .onlyIfCached
        let response = try await pipeline.send(request, options: options)
        guard response.source == .fresh else { return nil }
        return String(decoding: try await response.body.collect(), as: UTF8.self)
    }
}
