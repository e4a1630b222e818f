// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that holds back attempts to an origin while most of them fail.
///
/// Each origin (scheme, host and port) has a circuit, which follows `CircuitRules`: it opens when the share of failures is
/// reached, refuses attempts for a while, lets probes through, and closes when they succeed. A refused attempt fails at once
/// with ``ServiceError`` `.circuitOpen` and progress `.notSent`; ``ServiceError/retryAfter`` says when the next one may be
/// sent. An attempt is classified by its response head: errors, 500, 502, 503, 504, unknown server errors and missed deadlines are
/// failures; cancellation and local faults are not counted. 1,024 origins are remembered; the least recently used are forgotten
/// first.
///
/// Use it below hooks and retries, so that each attempt passes through it: `Pipeline(transport: CircuitBreaker(transport), …)`.
/// Observers receive ``ServiceEvent/Name/circuitOpened`` and ``ServiceEvent/Name/circuitClosed``. Safe to use from any number
/// of tasks.
public final class CircuitBreaker: WrappingTransport {
    package let transport: any Transport
    private let rules: CircuitRules
    private let origins: OriginTable<Circuit>

    /// A breaker around a transport, with all circuits closed.
    public init(_ transport: any Transport, rules: CircuitRules = CircuitRules()) {
        self.transport = transport
        self.rules = rules
        origins = OriginTable(capacity: 1024) { _ in Circuit(rules) }
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let origin = OriginText(request)
        let now = context.clock.now
        let circuit = origins.cell(of: origin, now: now)
        let pass: CircuitPass
        switch circuit.state.withLock({ $0.admit(now: now.sinceOrigin) }) {
        case .go(let given): pass = given
        case .refuse(let until): throw refusal(of: origin, for: until - now.sinceOrigin, context)
        }
        let result = await transport.result(of: request, body: body, context: context)
        let isFailure = CircuitRules.isFailure(AttemptOutcome(result, in: context))
        let end = context.clock.now.sinceOrigin
        let change: CircuitState.Change? = circuit.state.withLock { state in
            guard let isFailure else {
                state.giveBack(pass)
                return nil
            }
            return state.ended(pass, succeeded: !isFailure, now: end)
        }
        announce(change, origin: origin, context: context)
        return try result.get()
    }

    private func announce(_ change: CircuitState.Change?, origin: OriginText, context: CallContext) {
        guard let change else { return }
        context.emit(change == .closed ? .circuitClosed : .circuitOpened) { event in
            event.attempt = context.attempt
            event.detail = String(origin.text)
            if change != .closed { event.delay = rules.openTime }
        }
    }

    private func refusal(of origin: OriginText, for wait: Duration, _ context: CallContext) -> ServiceError {
        let wait = max(wait, .zero)
        let end = HTTPDate(context.clock.timestamp.advanced(by: wait))
        var error = ServiceError(
            .circuitOpen,
            "Most recent attempts at \(origin.text) failed, so nothing is sent there until \(end). Try again after that "
                + "(`retryAfter`), and find out what is wrong with the server.",
            progress: .notSent
        )
        error.retryAfter = wait
        return error
    }
}

/// The circuit of one origin.
private final class Circuit: Sendable {
    let state: Mutex<CircuitState>

    init(_ rules: CircuitRules) { state = Mutex(CircuitState(rules)) }
}

extension Transport {
    /// Sends a request, for code that treats failures as it does responses.
    func result(of request: URLRequest, body: RequestBody, context: CallContext) async -> Result<Response, any Error> {
        do {
            return .success(try await send(request, body: body, context: context))
        } catch {
            return .failure(error)
        }
    }
}

extension AttemptOutcome {
    /// How an attempt ended, for code around a transport.
    ///
    /// An attempt that is cancelled after its own deadline was not given up by anybody: the pipeline cuts off a transport that does
    /// not observe deadlines itself, and that is a timeout.
    init(_ result: Result<Response, any Error>, in context: CallContext) {
        switch result {
        case .failure(let error) where error.isCancellation:
            self = .failure(AttemptFailure(kind: context.isPastDeadline ? .timeout : .cancelled, progress: .bodySent))
        default:
            self.init(result)
        }
    }
}

extension CallContext {
    /// Whether the attempt's time is up.
    var isPastDeadline: Bool {
        attemptDeadline.map { $0 <= clock.now } ?? false
    }
}
