// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Loads one request through a pipeline, between the loading system's thread and the pipeline's task.
///
/// The task never touches the protocol or its client: it leaves deliveries here and has the loading system call the protocol
/// on its own thread, where start, stop and all calls of the client happen one after another. So nothing can be delivered
/// after a stop, and no lock is held over a call of the client.
final class InterceptedLoad: Sendable {
    private struct State {
        var load = LoadState()
        var work: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// See ``LoadState/start()``.
    func start() -> LoadState.Start {
        state.withLock { $0.load.start() }
    }

    /// See ``LoadState/take()``.
    func take() -> [LoadDelivery] {
        state.withLock { $0.load.take() }
    }

    /// See ``LoadState/pause()``.
    func pause() {
        state.withLock { $0.load.pause() }
    }

    /// Ends the load, and the exchange with it.
    func stop() {
        let work = state.withLock { state in
            state.load.stop()
            defer { state.work = nil }
            return state.work
        }
        work?.cancel()
    }

    /// Sends the request in a task of its own.
    ///
    /// - Parameter callBack: has the loading system call the protocol on its own thread; may be called from any.
    func begin(_ request: URLRequest, _ interception: Interception, callBack: @escaping @Sendable () -> Void) {
        let work = Task {
            do {
                try await run(request, interception, callBack)
            } catch {
                deliver([.failure(InterceptedLoad.urlError(error, of: request))], callBack)
            }
            state.withLock { $0.work = nil }
        }
        let isOver = state.withLock { state in
            // It may be over before it is noted, and then nobody would take it out.
            if !state.load.isOver { state.work = work }
            return state.load.isOver
        }
        if isOver { work.cancel() }
    }

    private func run(
        _ request: URLRequest,
        _ interception: Interception,
        _ callBack: @escaping @Sendable () -> Void
    ) async throws {
        var response = try await interception.send(request)
        response.url = response.url ?? request.url
        guard let head = LoadHead(response).urlResponse else { throw URLError(.badURL) }
        #if canImport(Darwin)
            deliver([.response(head)], callBack)
            for try await chunk in response.body { deliver([.data(Data(chunk))], callBack) }
            deliver([.end], callBack)
        #else
            // Of several pieces Foundation on Linux gives a caller without delegate the last one alone.
            let body = try await response.body.data(upTo: interception.bodyLimit)
            deliver([.response(head)] + (body.isEmpty ? [] : [.data(body)]) + [.end], callBack)
        #endif
    }

    private func deliver(_ deliveries: [LoadDelivery], _ callBack: @Sendable () -> Void) {
        if state.withLock({ $0.load.add(deliveries) }) { callBack() }
    }

    private static func urlError(_ error: any Error, of request: URLRequest) -> URLError {
        if let error = error as? ServiceError { return error.urlError }
        if let error = error as? URLError { return error }
        if error is CancellationError { return URLError(.cancelled) }
        return URLError(.unknown, userInfo: [NSUnderlyingErrorKey: error])
    }
}
