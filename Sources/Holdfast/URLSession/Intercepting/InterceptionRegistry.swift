// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Which class hands its requests to which pipeline.
final class InterceptionRegistry: Sendable {
    /// Interceptions that differ in nothing share a class; those with a choice of requests of their own share with none.
    struct Key: Hashable {
        let pipeline: ObjectIdentifier
        let settings: InterceptionSettings.Identity
        let bodyLimit: Int
    }

    private struct State {
        var lastNumber = 0
        var interceptions: [ObjectIdentifier: Interception] = [:]
        var pipelines: Set<ObjectIdentifier> = []
        var classes: [Key: InterceptingURLProtocol.Type] = [:]
    }

    /// The only one in a process, as classes are.
    static let shared = InterceptionRegistry(limit: 4096)

    private let limit: Int
    private let state = Mutex(State())
    /// Whether there ever was an interception: where there was none, calls take no lock.
    private let mayIntercept = Atomic(false)

    /// - Parameter limit: the most interceptions there may be at a time.
    init(limit: Int) {
        self.limit = limit
    }

    /// The class for an interception, an existing one if there is one under `key`; nil where there are as many as may be.
    func protocolClass(for interception: Interception, key: Key?) -> InterceptingURLProtocol.Type? {
        state.withLock { state in
            if let key, let known = state.classes[key] { return known }
            guard state.interceptions.count < limit else { return nil }
            // Numbers are never used again: a session that outlives the withdrawal of a pipeline must not meet another one.
            state.lastNumber += 1
            let made = InterceptionSlot.protocolClass(number: state.lastNumber)
            state.interceptions[ObjectIdentifier(made)] = interception
            if let key { state.classes[key] = made }
            state.pipelines.insert(interception.pipelineIdentity)
            mayIntercept.store(true, ordering: .releasing)
            return made
        }
    }

    /// What a class does; nil once it was withdrawn.
    func interception(of protocolClass: InterceptingURLProtocol.Type) -> Interception? {
        state.withLock { $0.interceptions[ObjectIdentifier(protocolClass)] }
    }

    /// Whether there are interceptions by a pipeline.
    func intercepts(for pipeline: ObjectIdentifier) -> Bool {
        mayIntercept.load(ordering: .acquiring) && state.withLock { $0.pipelines.contains(pipeline) }
    }

    /// Withdraws all interceptions by a pipeline.
    func withdraw(pipeline: ObjectIdentifier) {
        // What is let go is let go outside the lock: a pipeline that ends runs code of others.
        let withdrawn = state.withLock { state in
            let withdrawn = state.interceptions.filter { $0.value.pipelineIdentity == pipeline }
            state.pipelines.remove(pipeline)
            for number in withdrawn.keys { state.interceptions[number] = nil }
            state.classes = state.classes.filter { $0.key.pipeline != pipeline }
            return withdrawn
        }
        withExtendedLifetime(withdrawn) {}
    }
}
