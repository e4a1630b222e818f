// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// A body from the network that goes on where its connection broke.
final class ResumingBody: ByteSource {
    private struct State {
        var source: any ByteSource
        var plan: ResumePlan
        /// What the body failed with first; goes up where it cannot be mended.
        var original: (any Error)?
        var isOver = false
        var isCancelled = false
        /// What mends it now.
        var resuming: Task<Resumption.Result, any Error>?
    }

    private let resumption: Resumption
    private let state: Mutex<State>

    init(_ source: any ByteSource, _ plan: ResumePlan, _ resumption: Resumption) {
        self.resumption = resumption
        state = Mutex(State(source: source, plan: plan))
    }

    func next() async throws -> ByteChunk? {
        let source = try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            if state.isOver, let original = state.original { throw original }
            return state.source
        }
        do {
            let chunk = try await source.next()
            if let chunk { state.withLock { $0.plan.received(chunk.count) } }
            return chunk
        } catch {
            if error.isCancellation { throw error }
            source.cancel()
            return try await rest(after: error)
        }
    }

    /// The first bytes after the break.
    private func rest(after failure: any Error) async throws -> ByteChunk {
        try Task.checkCancellation()
        let (plan, original) = try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            let original = state.original ?? failure
            state.original = original
            return (state.plan, original)
        }
        guard ResumePlan.cures(ServiceError.attemptFailure(of: failure)) else { throw over(original) }
        // A task of its own, so that cancelling the body ends it as cancelling the reader does.
        let resuming = Task { [resumption] in try await resumption.run(plan) }
        let isCancelled = state.withLock { state in
            state.resuming = resuming
            return state.isCancelled
        }
        if isCancelled { resuming.cancel() }
        let result = try await withTaskCancellationHandler {
            try await resuming.value
        } onCancel: {
            resuming.cancel()
        }
        guard case .resumed(let source, let first, let newPlan) = result else { throw over(original) }
        let isOver = state.withLock { state in
            state.resuming = nil
            state.source = source
            state.plan = newPlan
            return state.isCancelled
        }
        if isOver {
            source.cancel()
            throw CancellationError()
        }
        return first
    }

    private func over(_ original: any Error) -> any Error {
        state.withLock { state in
            state.resuming = nil
            state.isOver = true
            return state.isCancelled ? CancellationError() : original
        }
    }

    func cancel() {
        let (source, resuming) = state.withLock { state in
            state.isCancelled = true
            return (state.source, state.resuming)
        }
        resuming?.cancel()
        source.cancel()
    }
}
