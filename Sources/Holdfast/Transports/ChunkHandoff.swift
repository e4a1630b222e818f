// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastStorage
private import Synchronization

/// Connects one reader and one feeder: nothing is fetched unless the reader waits for it.
package final class ChunkHandoff: Sendable {
    private struct State {
        var reader: CheckedContinuation<ByteChunk?, any Error>?
        var feeder: CheckedContinuation<Void, any Error>?
        var task: Task<Void, Never>?
        var end: Result<Void, any Error>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Whether the source has ended.
    package var isOver: Bool { state.withLock { $0.end != nil } }

    /// The next chunk; nil at the end. One caller at a time, a second one fails; its cancellation ends the source.
    ///
    /// - Parameter onWaiting: called once a chunk can be delivered.
    package func pull(onWaiting: () -> Void = {}) async throws -> ByteChunk? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                let (end, feeder): (Result<Void, any Error>?, CheckedContinuation<Void, any Error>?) = state.withLock {
                    state in
                    guard state.end == nil else { return (state.end, nil) }
                    guard state.reader == nil else { return (.failure(ServiceError.secondReader), nil) }
                    state.reader = reader
                    defer { state.feeder = nil }
                    return (nil, state.feeder)
                }
                // Nothing is wanted then: a chunk would meet no reader.
                if let end { return reader.resume(with: end.map { nil }) }
                feeder?.resume()
                onWaiting()
            }
        } onCancel: {
            cancel()
        }
    }

    /// Waits until a reader waits.
    package func demand() async throws {
        try await withCheckedThrowingContinuation { (feeder: CheckedContinuation<Void, any Error>) in
            let outcome: Result<Void, any Error>? = state.withLock { state in
                guard state.end == nil else { return .failure(CancellationError()) }
                if state.reader != nil { return .success(()) }
                state.feeder = feeder
                return nil
            }
            if let outcome { feeder.resume(with: outcome) }
        }
    }

    /// Delivers a chunk to the waiting reader.
    package func deliver(_ chunk: ByteChunk) {
        take { $0.end == nil }?.resume(returning: chunk)
    }

    /// Ends the source, normally or with an error; the first end counts.
    package func end(_ error: (any Error)?) {
        let reader = take { state in
            guard state.end == nil else { return false }
            state.end = error.map { .failure($0) } ?? .success(())
            state.task = nil
            return true
        }
        reader?.resume(with: error.map { .failure($0) } ?? .success(nil))
    }

    /// Takes over the feeder's task, to cancel it if the source is given up; at once if it already was.
    package func adopt(_ task: Task<Void, Never>) {
        let isOver = state.withLock { state in
            if state.end == nil { state.task = task }
            return state.end != nil
        }
        if isOver { task.cancel() }
    }

    /// Gives the source up; idempotent, and has no effect on an earlier end.
    package func cancel() {
        // In one step: a feeder that came between a first and a second one would wait forever.
        let (task, reader, feeder) = state.withLock { state in
            defer {
                if state.end == nil { state.end = .failure(CancellationError()) }
                (state.task, state.reader, state.feeder) = (nil, nil, nil)
            }
            return (state.task, state.reader, state.feeder)
        }
        task?.cancel()
        reader?.resume(throwing: CancellationError())
        feeder?.resume(throwing: CancellationError())
    }

    private func take(
        where condition: (inout State) -> Bool
    ) -> CheckedContinuation<ByteChunk?, any Error>? {
        state.withLock { state in
            guard condition(&state) else { return nil }
            defer { state.reader = nil }
            return state.reader
        }
    }
}
