// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// By which way a pipeline makes its first attempt, while it is told to do the same.
enum AttemptWay: String, CaseIterable, Sendable {
    /// Nothing governs it.
    case straight
    /// A step that does nothing has it go the general way.
    case prepared
    /// So does somebody who looks on.
    case observed
    /// So does a deadline that is far away.
    case limited
}

/// What a pipeline is to do, apart from the way.
struct AttemptScenario: Sendable {
    var steps: [ScriptedTransport.Step]
    var request = URLRequest.get("http://origin.example/a", ["X-A": "1"])
    var body: RequestBody?
    var options = CallOptions()
    /// How many retries there are, at once or after a second in turn.
    var retries = 0
    var attemptTimeout: Duration? = .seconds(60)
    var implicit: HeaderFields = [:]
    /// Changes what the transport hands up.
    var shaping: @Sendable (inout Response) -> Void = { _ in }
    var isExhaustedBefore = false

    /// Everything that anybody sees of the call.
    func seen(_ way: AttemptWay) async -> [String] {
        let log = HookLog()
        let clock = ManualClock(autoAdvances: true)
        let fields = implicit
        let transport = WatchedTransport(
            inner: ScriptedTransport(steps, implicit: { _ in fields }),
            shaping: shaping,
            log: log
        )
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = attemptTimeout
        switch way {
        case .straight: break
        case .prepared: configuration.prepare = [{ _, _ in }]
        case .observed: configuration.observers = [EventRecorder()]
        case .limited: configuration.callTimeout = .seconds(1 << 30)
        }
        let retries = retries
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in
                log.add("retrier made")
                return WatchedRetrier(retries: retries, log: log)
            },
            hooks: [WatchingHook(log: log)],
            configuration: configuration
        )
        let scope = NestedRetryScope()
        scope.begin(request)
        scope.ended(request, exhausted: isExhaustedBefore)
        await NestedRetryScope.$current.withValue(scope) {
            do {
                let response = try await pipeline.send(request, body: body, options: options)
                log.add("response \(AttemptScenario.describe(response))")
                let bytes = try? await response.body.collect()
                log.add("body \(bytes.map { String(decoding: $0, as: UTF8.self) } ?? "fails")")
            } catch {
                log.add("error \(AttemptScenario.describe(error))")
            }
        }
        log.add("retried below: \(scope.wasRetried)")
        log.add("waits \(clock.waits), now \(clock.now)")
        return log.entries
    }

    static func describe(_ response: Response) -> String {
        "\(response.status) \(response.fields.map { "\($0.name): \($0.value)" }) \(response.source) "
            + "\(response.url?.absoluteString ?? "no URL") sent \(response.requestTime.map { "\($0)" } ?? "-") "
            + "came \(response.responseTime.map { "\($0)" } ?? "-") answers \(describe(response.presentation)) "
            + "attempts \(response.attempts)"
    }

    static func describe(_ error: any Error) -> String {
        guard let error = error as? ServiceError else { return "\(type(of: error))" }
        return "\(error.code) \(error.progress.map { "\($0)" } ?? "-") attempts \(error.attempts) "
            + "caused by \(error.cause.map { describe($0) } ?? "nothing")"
    }

    static func describe(_ presentation: Presentation) -> String {
        switch presentation {
        case .unknown: "unknown"
        case .hidden: "hidden"
        case .presented(let presented): "\(presented.fields.map { "\($0.name): \($0.value)" })"
        }
    }
}

/// Writes down with what context each attempt is sent.
private struct WatchedTransport: Transport {
    let inner: ScriptedTransport
    let shaping: @Sendable (inout Response) -> Void
    let log: HookLog

    var enforcesDeadline: Bool { true }

    func implicitFields(for request: URLRequest) -> HeaderFields { inner.implicitFields(for: request) }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        log.add(
            "send \(request.url?.absoluteString ?? "") attempt \(context.attempt) until "
                + "\(context.attemptDeadline.map { "\($0)" } ?? "-") cut \(context.attemptIsCut) "
                + "new connection \(context.wantsNewConnection) sent at \(context.exchange?.requestTime ?? .distantPast) "
                + "came \(context.exchange?.responseTime.map { "\($0)" } ?? "-")"
        )
        var response = try await inner.send(request, body: body, context: context)
        shaping(&response)
        return response
    }
}

private struct WatchedRetrier: Retrier {
    let retries: Int
    let log: HookLog
    var allowsMultipleRetries: Bool { true }

    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
        log.add(
            "retrier asked of \(attempt.number): \(attempt.outcome), \(attempt.response?.status.rawValue ?? 0), "
                + "replayable \(attempt.bodyIsReplayable), fields \(attempt.exchange.fields.map { "\($0.name)" }), "
                + "attempt \(context.attempt)"
        )
        return attempt.number <= retries ? .retry(after: .seconds(attempt.number - 1)) : .stop(.retrierDeclined)
    }
}

/// Writes down what a hook sees at the end.
private struct WatchingHook: ServiceHook {
    let log: HookLog
    var scope: HookScope { .message }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add("success \(AttemptScenario.describe(response)) \(seen(request, context))")
    }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        log.add("failure \(AttemptScenario.describe(error)) \(seen(request, context))")
        return nil
    }

    func onCancel(_ request: URLRequest, _ context: CallContext) {
        log.add("cancel \(seen(request, context))")
    }

    private func seen(_ request: URLRequest, _ context: CallContext) -> String {
        guard let exchange = context.exchange else { return "attempt \(context.attempt), nothing sent" }
        let came = exchange.responseTime.map { "\($0)" } ?? "-"
        return
            "\(request.url?.absoluteString ?? "") attempt \(context.attempt) sent \(exchange.requestTime) came \(came) "
            + "\(exchange.presentedFields.map { "\($0.name): \($0.value)" }) applied \(context.mayBeApplied)"
    }
}
