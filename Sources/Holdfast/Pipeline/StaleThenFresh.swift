// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension Pipeline {
    /// Returns the stored response at once, and then the origin's: at most two responses to one request.
    ///
    /// - If the stored response is fresh, it is the only one; nothing is sent.
    /// - If it is stale but may be used, it comes first, while the origin is asked to confirm it. A 304 ends the sequence,
    ///   because the first response is still valid; any other response of the origin, whatever its status, comes second.
    /// - If no stored response may be used, the call's ordinary response is the only one.
    ///
    /// This accepts any staleness (RFC 9111 §5.2.1.2), up to `options.cache.maxStale` if that is set. Whatever forbids stale
    /// use still does: `must-revalidate` and `no-cache` of the response, `proxy-revalidate` and `s-maxage` in a shared cache,
    /// `no-cache` or `max-age` of the request, and a soft purge. With `reload`, `revalidate` and `noStore`, only the origin's
    /// response is returned; with `onlyIfCached` and `ignoresAge` (or a `cachePolicy` of that meaning), or a method other than
    /// GET and HEAD, only the ordinary one.
    ///
    /// Each iteration is a separate call and begins when its iterator is made. If a stale response comes first, hooks and
    /// statistics see two calls. Dropping the iterator, or cancelling the task that iterates, ends the exchange in progress.
    ///
    /// - Parameters:
    ///   - request: what to send, without a one-shot body.
    ///   - options: the options of the call.
    /// - Returns: the sequence. It throws what `send` would throw, even after a stale response, so that the caller knows that
    ///   the response was not confirmed.
    public func staleThenFresh(for request: URLRequest, options: CallOptions = CallOptions()) -> StaleThenFresh {
        StaleThenFresh(pipeline: self, request: request, options: options)
    }
}

/// At most two responses to one request; see ``Pipeline/staleThenFresh(for:options:)``.
public struct StaleThenFresh: AsyncSequence, Sendable {
    public typealias Element = Response

    let pipeline: Pipeline
    let request: URLRequest
    let options: CallOptions

    public func makeAsyncIterator() -> Iterator {
        let (stream, continuation) = AsyncThrowingStream<Response, any Error>.makeStream()
        let task = pipeline.background.spawn {
            do {
                try await run { response in
                    // Bodies that nobody will read must not continue.
                    if case .terminated = continuation.yield(response) { response.body.discard() }
                }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
        continuation.onTermination = { _ in task.cancel() }
        return Iterator(responses: stream.makeAsyncIterator())
    }

    /// Returns the responses of one iteration.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var responses: AsyncThrowingStream<Response, any Error>.Iterator

        /// The next response; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Response? {
            if let response = try await responses.next(isolation: actor) { return response }
            // The stream ends silently if its reader is cancelled.
            try Task.checkCancellation()
            return nil
        }
    }

    private func run(_ yield: (Response) -> Void) async throws {
        let asked = CacheDirective(options.cache, policy: request.cachePolicy)
        let method = RequestMethod(request)
        let wantsOneAnswer =
            asked.reload || asked.revalidate || asked.noStore || asked.onlyIfCached || asked.ignoresAge
            || method != .get && method != .head
        guard !wantsOneAnswer, let stored = try await stored(asked) else {
            return yield(try await pipeline.send(request, options: options))
        }
        yield(stored)
        guard stored.source == .stale else { return }
        var confirming = options
        confirming.cache = asked
        confirming.cache.revalidate = true
        confirming.cache.maxStale = nil
        let answer = try await pipeline.send(request, options: confirming)
        // A stored response that the origin has confirmed, possibly for another call.
        if answer.cacheDecision?.age != nil, answer.isSame(as: stored) {
            answer.body.discard()
        } else {
            yield(answer)
        }
    }

    /// What is stored and may be used, stale or fresh; nil if there is nothing.
    private func stored(_ asked: CacheDirective) async throws -> Response? {
        var options = options
        options.cache = asked
        options.cache.onlyIfCached = true
        options.cache.maxStale = asked.maxStale ?? .seconds(Int64.max)
        let response: Response
        do {
            response = try await pipeline.send(request, options: options)
        } catch {
            if error.isCancellation { throw error }
            // Most likely a stored response that the caller's acceptance rejected; the second call will show.
            return nil
        }
        return response.cacheDecision?.outcome == .unsatisfiable ? nil : response
    }
}

extension Response {
    /// Whether both are the same stored response, as far as their validators tell.
    fileprivate func isSame(as other: Response) -> Bool {
        status == other.status && fields.values(of: .eTag) == other.fields.values(of: .eTag)
            && fields.values(of: .lastModified) == other.fields.values(of: .lastModified)
    }
}
