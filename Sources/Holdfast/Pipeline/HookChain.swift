// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A stage of the pipeline: runs one exchange and everything beneath it.
protocol Exchanging: Sendable {
    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response
}

/// Runs a call down through hooks, into the next stage, and up again; gives each hook exactly one ending.
struct HookChain<Next: Exchanging>: Exchanging {
    let hooks: [any ServiceHook]
    /// The place of the first hook in the whole pipeline, which names its state in the context.
    let firstIndex: Int
    let next: Next

    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response {
        try await exchange(request, from: 0, &context)
    }

    private func exchange(
        _ request: URLRequest,
        from index: Int,
        _ context: inout CallContext
    ) async throws -> Response {
        guard index < hooks.count else { return try await next.exchange(request, &context) }
        let hook = hooks[index]
        var request = request
        context.currentHook = firstIndex + index
        if let answer = try await hook.onSchedule(&request, &context) {
            return answer.answering(request)
        }

        var response: Response
        do {
            response = try await exchange(request, from: index + 1, &context)
        } catch {
            context.currentHook = firstIndex + index
            let seen = context.exchange?.request ?? request
            // A failure that a cancelled caller will never look at is no failure either.
            if error.isCancellation || Task.isCancelled {
                hook.onCancel(seen, context)
                throw CancellationError()
            }
            guard let replacement = await hook.onFailure(error, seen, &context) else { throw error }
            return replacement.answering(request)
        }
        context.currentHook = firstIndex + index
        do {
            try await hook.onSuccess(&response, context.exchange?.request ?? request, &context)
        } catch {
            response.body.discard()
            throw error
        }
        return response
    }
}

extension Response {
    /// The response with the URL it answers, where its maker named none.
    fileprivate func answering(_ request: URLRequest) -> Response {
        guard url == nil else { return self }
        var response = self
        response.url = request.url
        return response
    }
}

extension Error {
    /// Whether the error says that the task was cancelled: it ends a call without being a failure of it.
    var isCancellation: Bool {
        self is CancellationError || (self as? URLError)?.code == .cancelled
    }
}
