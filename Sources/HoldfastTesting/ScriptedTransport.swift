// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport that answers by a script and records what was sent.
///
/// Delays and deadlines use the call's clock, so nothing waits with a ``ManualClock``. A request after the end of the script fails
/// with `.unsupported` and a message that says so.
public final class ScriptedTransport: Transport {
    /// One answer of the script.
    public struct Step: Sendable {
        enum Outcome: Sendable {
            case response(@Sendable () -> Response)
            case failure(any Error)
            case silence
        }

        let outcome: Outcome
        var delay: Duration = .zero
        var interim: [ResponseHead] = []

        /// Answers with a response.
        public static func respond(
            _ status: Int = 200,
            _ fields: HeaderFields = HeaderFields(),
            body: String = ""
        ) -> Step {
            Step(
                outcome: .response {
                    Response(
                        status: StatusCode(rawValue: status),
                        fields: fields,
                        body: ResponseBody(ByteChunk(copying: body.utf8))
                    )
                }
            )
        }

        /// Answers with a response whose body arrives in `chunks`, and then ends, or fails with `failure`.
        public static func stream(
            _ status: Int = 200,
            _ fields: HeaderFields = HeaderFields(),
            chunks: [String],
            length: Int? = nil,
            failure: (any Error)? = nil
        ) -> Step {
            Step(
                outcome: .response {
                    let source = ScriptedBody(chunks.map { ByteChunk(copying: $0.utf8) }, failure: failure)
                    return Response(
                        status: StatusCode(rawValue: status),
                        fields: fields,
                        body: ResponseBody(source, length: length)
                    )
                }
            )
        }

        /// Fails with this error.
        public static func fail(_ error: any Error) -> Step { Step(outcome: .failure(error)) }

        /// Fails like a broken connection, after the exchange has made `progress`.
        public static func fail(
            _ code: ServiceError.Code = .connectionLost,
            progress: TransportProgress,
            connectionReused: Bool = false
        ) -> Step {
            .fail(ServiceError(code, "scripted", progress: progress, connectionReused: connectionReused))
        }

        /// Never answers; ends at the attempt's deadline, or when the task is cancelled.
        public static let silence = Step(outcome: .silence)

        /// The same step after a wait on the call's clock.
        public func delayed(by delay: Duration) -> Step {
            var step = self
            step.delay = delay
            return step
        }

        /// The same step after interim responses.
        public func after(interim heads: [ResponseHead]) -> Step {
            var step = self
            step.interim = heads
            return step
        }
    }

    /// One request that was sent.
    public struct Sent: Sendable {
        /// The request as it reached the transport.
        public let request: URLRequest
        /// Its content, read to the end; nil if it could not be read.
        public let body: ByteChunk?
        /// The attempt's number.
        public let attempt: Int
        /// When it was sent, by the call's clock.
        public let time: MonotonicInstant
    }

    private struct State {
        var sent: [Sent] = []
        var steps: ArraySlice<Step>
    }

    private let state: Mutex<State>
    private let repeatsLastStep: Bool
    private let answer: (@Sendable (URLRequest) async throws -> Step)?
    private let implicit: @Sendable (URLRequest) -> HeaderFields
    private let sends = CountWatch()

    /// A transport that plays `steps`, one for each request.
    ///
    /// - Parameters:
    ///   - steps: the answers to the requests, in order.
    ///   - repeatsLastStep: whether the last step answers all further requests.
    ///   - implicit: the fields that it claims to add below the hooks.
    public init(
        _ steps: [Step],
        repeatsLastStep: Bool = false,
        implicit: @escaping @Sendable (URLRequest) -> HeaderFields = { _ in HeaderFields() }
    ) {
        state = Mutex(State(steps: steps[...]))
        self.repeatsLastStep = repeatsLastStep
        self.implicit = implicit
        answer = nil
    }

    /// A transport that calls a closure for each answer.
    public init(
        implicit: @escaping @Sendable (URLRequest) -> HeaderFields = { _ in HeaderFields() },
        answering answer: @escaping @Sendable (URLRequest) async throws -> Step
    ) {
        state = Mutex(State(steps: []))
        repeatsLastStep = false
        self.implicit = implicit
        self.answer = answer
    }

    /// Everything sent so far, in order.
    public var sent: [Sent] { state.withLock { $0.sent } }

    /// Waits until `count` requests in total were sent.
    public func waitForSends(_ count: Int) async throws { try await sends.wait(for: count) }

    public var enforcesDeadline: Bool { true }

    public func implicitFields(for request: URLRequest) -> HeaderFields { implicit(request) }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let content: ByteChunk?
        // A request's stream stays unread, so that it can be sent again.
        if case .requestStream = body.form {
            content = ByteChunk()
        } else {
            content = try? await body.collect(from: request)
        }
        let scripted: Step? = state.withLock { state in
            state.sent.append(Sent(request: request, body: content, attempt: context.attempt, time: context.clock.now))
            guard let step = state.steps.first else { return nil }
            if !(repeatsLastStep && state.steps.count == 1) { state.steps.removeFirst() }
            return step
        }
        sends.increment()
        let step: Step
        if let answer {
            step = try await answer(request)
        } else if let scripted {
            step = scripted
        } else {
            throw ServiceError(
                .unsupported,
                "The script has no step for request \(sent.count): \(request.url?.absoluteString ?? "no URL"); add one."
            )
        }
        for head in step.interim { context.report(interim: head) }
        try await context.hold(step.delay)
        switch step.outcome {
        case .response(let make):
            return make()
        case .failure(let error):
            throw error
        case .silence:
            try await context.hold(.seconds(1 << 40))
            throw CancellationError()
        }
    }
}

extension CallContext {
    /// Waits on the call's clock.
    ///
    /// - Throws: the timeout of the attempt, at its deadline.
    func hold(_ length: Duration) async throws {
        guard length > .zero else { return }
        let end = clock.now.advanced(by: length)
        guard let attemptDeadline, attemptDeadline < end else { return try await clock.sleep(until: end) }
        try await clock.sleep(until: attemptDeadline)
        throw attemptTimeout(progress: .bodySent)
    }
}

/// A body that plays chunks, and then ends or fails.
private final class ScriptedBody: ByteSource {
    private struct State {
        var chunks: ArraySlice<ByteChunk>
        var isCancelled = false
    }

    private let state: Mutex<State>
    private let failure: (any Error)?

    init(_ chunks: [ByteChunk], failure: (any Error)?) {
        state = Mutex(State(chunks: chunks[...]))
        self.failure = failure
    }

    func next() async throws -> ByteChunk? {
        let chunk: ByteChunk? = try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            return state.chunks.popFirst()
        }
        if let chunk { return chunk }
        if let failure { throw failure }
        return nil
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}
