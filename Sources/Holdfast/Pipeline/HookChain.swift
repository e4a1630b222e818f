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

/// Lets a hook run what lies beneath it outside of its caller's task.
protocol Forwarding: AnyObject, Sendable {
    /// Runs the hooks beneath `hook`, what follows them, and the ending of `hook` itself.
    ///
    /// - Parameter hook: the hook's place in the whole pipeline.
    func forward(_ request: URLRequest, beneath hook: Int, _ context: inout CallContext) async throws -> Response
}

/// Runs a call down through hooks, into the next stage, and up again; gives each hook exactly one ending.
final class HookChain<Next: Exchanging>: Exchanging, Forwarding {
    private let hooks: [any ServiceHook]
    private let firstIndex: Int
    private let next: Next

    /// - Parameter firstIndex: the place of the first hook in the whole pipeline, which names its state in the context.
    init(hooks: [any ServiceHook], firstIndex: Int, next: Next) {
        self.hooks = hooks
        self.firstIndex = firstIndex
        self.next = next
    }

    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response {
        try await exchange(request, from: 0, &context)
    }

    private func exchange(
        _ request: URLRequest,
        from index: Int,
        _ context: inout CallContext
    ) async throws -> Response {
        guard index < hooks.count else { return try await next.exchange(request, &context) }
        var request = request
        context.currentHook = firstIndex + index
        context.chain = self
        if let answer = try await hooks[index].onSchedule(&request, &context) {
            return answer.answering(request)
        }
        return try await forward(request, beneath: firstIndex + index, &context)
    }

    func forward(_ request: URLRequest, beneath place: Int, _ context: inout CallContext) async throws -> Response {
        let hook = hooks[place - firstIndex]
        var response: Response
        do {
            response = try await exchange(request, from: place - firstIndex + 1, &context)
        } catch {
            context.currentHook = place
            let seen = context.exchange?.request ?? request
            // A failure that a cancelled caller will never look at is no failure either.
            if error.isCancellation || Task.isCancelled {
                hook.onCancel(seen, context)
                throw CancellationError()
            }
            guard let replacement = await hook.onFailure(error, seen, &context) else { throw error }
            return replacement.answering(request)
        }
        context.currentHook = place
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
    package var isCancellation: Bool {
        self is CancellationError || (self as? URLError)?.code == .cancelled
    }
}
