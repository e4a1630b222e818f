// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A stage of the pipeline: runs one exchange and everything below it.
protocol Exchanging: Sendable {
    func exchange(_ request: URLRequest, context: inout CallContext) async throws -> Response
}

/// Lets a hook run everything below it outside of its caller's task.
protocol Forwarding: AnyObject, Sendable {
    /// Runs the hooks below `hook`, everything after them, and the ending of `hook` itself.
    ///
    /// - Parameter hook: the hook's position in the whole pipeline.
    func forward(_ request: URLRequest, below hook: Int, context: inout CallContext) async throws -> Response

    /// Whether no hook above `hook` gets the response, as far as is known: then the caller's acceptance gets what `forward`
    /// returns.
    func passesUnchanged(from hook: Int) -> Bool
}

/// Passes a call down through hooks into the next stage, and up again; gives each hook exactly one ending.
final class HookChain<Next: Exchanging>: Exchanging, Forwarding {
    /// A hook, and how it is called.
    private enum Hook: Sendable {
        case synchronous(any SynchronousServiceHook)
        case asynchronous(any ServiceHook)

        var any: any ServiceHook {
            switch self {
            case .synchronous(let hook): hook
            case .asynchronous(let hook): hook
            }
        }
    }

    private let hooks: [Hook]
    private let firstIndex: Int
    private let next: Next
    /// Whether each hook may be foreign code, which may edit the request.
    private let mayEdit: [Bool]
    private let idle = IdleMoments()

    /// - Parameter firstIndex: the position of the first hook in the whole pipeline, which identifies its state in the context.
    init(hooks: [any ServiceHook], firstIndex: Int, next: Next) {
        self.hooks = hooks.map { hook in
            (hook as? any SynchronousServiceHook).map { .synchronous($0) } ?? .asynchronous(hook)
        }
        self.firstIndex = firstIndex
        self.next = next
        mayEdit = hooks.map { !($0 is CachingHook || $0 is AuthorizationHook) }
    }

    func exchange(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        if hooks.isEmpty { return try await next.exchange(request, context: &context) }
        return try await run(request, from: 0, endings: 0, context: &context)
    }

    func forward(_ request: URLRequest, below place: Int, context: inout CallContext) async throws -> Response {
        try await run(request, from: place - firstIndex + 1, endings: place - firstIndex, context: &context)
    }

    func passesUnchanged(from place: Int) -> Bool {
        (0..<place - firstIndex).allSatisfy { idle.isIdle(.success, index: $0) }
    }

    /// - Parameters:
    ///   - first: the first hook to call.
    ///   - top: the uppermost hook that gets an ending.
    private func run(
        _ request: URLRequest,
        from first: Int,
        endings top: Int,
        context: inout CallContext
    ) async throws -> Response {
        var request = request
        var left = LeftRequests(top: top, of: hooks.count)
        var outcome: Result<Response, any Error>?
        var index = first
        var content: Data??
        var timeout = context.options.areDefault ? nil : context.options.timeout
        // One function for both directions: a separate call for each moment would cost as much as the moment.
        while index < hooks.count {
            if !idle.isIdle(.schedule, index: index) {
                left.keep(request, before: index)
                context.currentHook = firstIndex + index
                if context.chain !== self { context.chain = self }
                let entering = context.withholdsAdditions ? request : nil
                if mayEdit[index], content == nil { content = .some(request.httpBody) }
                do {
                    let answer =
                        switch hooks[index] {
                        case .synchronous(let hook): try hook.scheduled(&request, context: &context)
                        case .asynchronous(let hook): try await hook.onSchedule(&request, &context)
                        }
                    if let answer { outcome = .success(answer.answering(request)) }
                    if context.takesDefault(.schedule, of: hooks[index].any) { idle.note(.schedule, index: index) }
                } catch {
                    outcome = .failure(error)
                }
                // A hook that answers or throws gets no ending, and the hooks below are not called.
                if outcome != nil { break }
                if mayEdit[index], let before = content {
                    let after = request.httpBody
                    if after != nil || before != nil { context.adopt(after, insteadOf: before) }
                    content = .some(after)
                    if !context.options.areDefault { context.adopt(insteadOf: &timeout) }
                }
                // The pipeline's own credential has its own scope, which says where it may be sent.
                if let entering, !(hooks[index].any is AuthorizationHook) { request.withholdAdditions(to: entering) }
            }
            index += 1
        }
        if outcome == nil {
            do {
                outcome = .success(try await next.exchange(request, context: &context))
            } catch {
                outcome = .failure(error.naming(CallSubject(request, context: context, operationName: nil)))
            }
        }
        while index > top {
            index -= 1
            switch outcome {
            case .success(var response):
                if idle.isIdle(.success, index: index) { continue }
                context.currentHook = firstIndex + index
                let seen = context.exchange?.request ?? left.request(index) ?? request
                do {
                    switch hooks[index] {
                    case .synchronous(let hook): try hook.succeeded(&response, to: seen, context: &context)
                    case .asynchronous(let hook): try await hook.onSuccess(&response, seen, &context)
                    }
                    if context.takesDefault(.success, of: hooks[index].any) { idle.note(.success, index: index) }
                    outcome = .success(response)
                } catch {
                    response.body.discard()
                    outcome = .failure(error)
                }
            case .failure(let error):
                outcome = await ending(error, index: index, request: left.request(index) ?? request, context: &context)
            case nil: break
            }
        }
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }

    /// Tells a hook that the call failed, or was cancelled.
    ///
    /// - Parameter request: as it left the hook.
    private func ending(
        _ error: any Error,
        index: Int,
        request: URLRequest,
        context: inout CallContext
    ) async -> Result<Response, any Error> {
        context.currentHook = firstIndex + index
        let seen = context.exchange?.request ?? request
        // A failure that a cancelled caller will never see does not count as a failure.
        if error.isCancellation || Task.isCancelled {
            hooks[index].any.onCancel(seen, context)
            return .failure(CancellationError())
        }
        let answer = await hooks[index].any.onFailure(error, seen, &context)
        if context.takesDefault(.failure, of: hooks[index].any) {
            idle.note(.failure, index: index)
            if idle.isIdle(.schedule, index: index), idle.isIdle(.success, index: index) {
                DebugWarning.implementsNothing(type(of: hooks[index].any))
            }
        }
        guard let replacement = answer else { return .failure(error) }
        return .success(replacement.answering(request))
    }
}

extension CallContext {
    /// Takes over content that a hook has written into the request.
    fileprivate mutating func adopt(_ content: Data?, insteadOf before: Data?) {
        if !content.isSame(as: before) { body = content.map { .data($0) } ?? .none }
    }

    /// Takes over a time limit that a hook has set.
    fileprivate mutating func adopt(insteadOf before: inout Duration?) {
        guard let timeout = options.timeout, timeout != before else { return }
        before = timeout
        deadline = clock.now.advanced(by: timeout)
    }
}

extension Data? {
    /// Whether both are equal; skips the comparison if both are the same bytes in memory.
    fileprivate func isSame(as other: Data?) -> Bool {
        guard let self, let other, self.count == other.count else { return self == nil && other == nil }
        let start = self.withUnsafeBytes { $0.baseAddress }
        return start == other.withUnsafeBytes { $0.baseAddress } && self.count > 32 || self == other
    }
}

/// The request as it left each hook, stored only if a hook below may have edited it since.
private struct LeftRequests {
    private let top: Int
    private let hookCount: Int
    private var requests: [URLRequest] = []

    init(top: Int, of hookCount: Int) {
        self.top = top
        self.hookCount = hookCount
    }

    /// Records that the hooks above `index` that are not recorded yet have passed on this request.
    mutating func keep(_ request: URLRequest, before index: Int) {
        guard top + requests.count < index else { return }
        if requests.isEmpty { requests.reserveCapacity(hookCount - top) }
        while top + requests.count < index { requests.append(request) }
    }

    /// Nil if nobody below the hook could edit it.
    func request(_ index: Int) -> URLRequest? {
        index - top < requests.count ? requests[index - top] : nil
    }
}

extension Response {
    /// The response of a hook: with the URL of its request if it has none, and marked as made locally if no exchange brought it.
    fileprivate func answering(_ request: URLRequest) -> Response {
        var isMadeHere = false
        if case .network = source { isMadeHere = attempts.isEmpty && responseTime == nil }
        guard url == nil || isMadeHere else { return self }
        var response = self
        response.url = url ?? request.url
        if isMadeHere { response.source = .synthesized }
        return response
    }
}

extension Error {
    /// Whether the error says that the task was cancelled, which ends a call without being a failure.
    package var isCancellation: Bool {
        self is CancellationError || (self as? URLError)?.code == .cancelled
    }
}

/// Which moments the hooks of a chain do not implement, as far as is known: those are not called any more.
///
/// The default implementation of a moment reports itself when it runs. It runs only for a type that does not implement the moment,
/// so one call is enough for all later ones.
final class IdleMoments: Sendable {
    enum Moment: Sendable {
        case schedule
        case success
        case failure
    }

    private let schedules = Atomic<UInt64>(0)
    private let successes = Atomic<UInt64>(0)
    private let failures = Atomic<UInt64>(0)

    /// Whether a hook is known not to implement a moment; only for the first 64 hooks.
    func isIdle(_ moment: Moment, index: Int) -> Bool {
        let known =
            switch moment {
            case .schedule: schedules.load(ordering: .relaxed)
            case .success: successes.load(ordering: .relaxed)
            case .failure: failures.load(ordering: .relaxed)
            }
        return index < 64 && known >> UInt64(index) & 1 == 1
    }

    func note(_ moment: Moment, index: Int) {
        guard index < 64 else { return }
        switch moment {
        case .schedule: schedules.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        case .success: successes.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        case .failure: failures.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        }
    }
}

extension CallContext {
    /// Records that a default implementation runs for a moment that `type` does not implement.
    mutating func noteDefault(_ moment: IdleMoments.Moment, of type: any ServiceHook.Type) {
        defaultTaken = DefaultMoment(type: ObjectIdentifier(type), moment: moment)
    }

    /// Whether the hook does not implement the moment that has just been called.
    ///
    /// The type is compared: a hook that passes its moments on to another one runs the default of that one's type, which says
    /// nothing about its own. The moment is compared too, since such a hook may throw afterward, and the record is then found at
    /// another moment.
    mutating func takesDefault(_ moment: IdleMoments.Moment, of hook: @autoclosure () -> any ServiceHook) -> Bool {
        guard let taken = defaultTaken else { return false }
        defaultTaken = nil
        return taken.moment == moment && taken.type == ObjectIdentifier(type(of: hook()))
    }
}

/// A default implementation that ran: for which type, and for which moment.
struct DefaultMoment: Sendable {
    let type: ObjectIdentifier
    let moment: IdleMoments.Moment
}

/// Warns, in debug builds, about code that compiles but is probably a mistake: once for each type, on standard error.
enum DebugWarning {
    private static let told = Mutex<Set<ObjectIdentifier>>([])

    /// A hook for which every moment has been called and ran only the protocol's defaults.
    static func implementsNothing(_ type: any ServiceHook.Type) {
        tell(
            of: type,
            "implements none of onSchedule, onSuccess and onFailure. A method whose parameters differ from those of ServiceHook is a "
                + "different method, which nobody calls: compare their signatures."
        )
    }

    /// A retrier that asked for a retry and will not be asked about the next failure.
    static func isAskedOnce(_ type: any Retrier.Type) {
        tell(
            of: type,
            "was asked about one failure and will not be asked about the next, because `allowsMultipleRetries` is false by default. "
                + "Implement it: true to be asked again, false to keep this behavior without this warning."
        )
    }

    /// Whether there was a warning about one type since the process began; for tests.
    static func wasTold(of type: Any.Type) -> Bool {
        told.withLock { $0.contains(ObjectIdentifier(type)) }
    }

    private static func tell(of type: Any.Type, _ text: @autoclosure () -> String) {
        #if DEBUG
            guard told.withLock({ $0.insert(ObjectIdentifier(type)).inserted }) else { return }
            FileHandle.standardError.write(Data("Holdfast: \(type) \(text())\n".utf8))
        #endif
    }
}
