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
    /// What is stored at once, then what the origin says: at most two responses to one request.
    ///
    /// - A fresh stored response is the only one; nothing is sent.
    /// - A stale one that may be used comes first, while the origin is being asked to confirm it. A 304 ends the sequence,
    ///   since the first response still holds; anything else the origin answers, whatever its status, comes second.
    /// - Where nothing stored may be used, the call's ordinary answer is the only response.
    ///
    /// Asking for this accepts any staleness (RFC 9111 §5.2.1.2), up to `options.cache.maxStale` where that is set; what
    /// forbids stale use still does: `must-revalidate` and `no-cache` of the response, in a shared cache `proxy-revalidate` and
    /// `s-maxage`, `no-cache` or `max-age` demands of the request, a soft purge. `reload`, `revalidate` and `noStore` ask
    /// for the origin's answer alone, `onlyIfCached` and `ignoresAge` (or a `cachePolicy` of that meaning) for the ordinary one;
    /// so does a request whose method is neither GET nor HEAD.
    ///
    /// Each iteration is a call of its own and begins when its iterator is made. With a stale response first it counts as two calls
    /// to hooks and statistics. Dropping the iterator, or cancelling the task that iterates, ends what is under way.
    ///
    /// - Parameters:
    ///   - request: what to send, without a one-shot body.
    ///   - options: what else is asked for the call.
    /// - Returns: the sequence. It fails with what `send` would fail with; after a stale response too, so that the caller can
    ///   tell that it has not been confirmed.
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
                    // Bodies that nobody will read must not go on.
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

    /// Hands out the responses of one iteration.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var responses: AsyncThrowingStream<Response, any Error>.Iterator

        /// The next response; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Response? {
            if let response = try await responses.next(isolation: actor) { return response }
            // The stream ends without a word when its reader is cancelled.
            try Task.checkCancellation()
            return nil
        }
    }

    private func run(_ yield: (Response) -> Void) async throws {
        let asked = CacheDirective(options.cache, policy: request.cachePolicy)
        let method = request.httpMethod.flatMap { RequestMethod(validating: $0) } ?? .get
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
        // A stored response that the origin has confirmed, be it for another call.
        if answer.cacheDecision?.age != nil, answer.isSame(as: stored) {
            answer.body.discard()
        } else {
            yield(answer)
        }
    }

    /// What is stored and may be used, stale or fresh; nil where nothing is.
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
            // A stored response that the caller's acceptance refused, most likely; the second call will tell.
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
