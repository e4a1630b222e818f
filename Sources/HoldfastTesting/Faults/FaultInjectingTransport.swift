// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that lets things go wrong by a plan, so that retries, caches and their settings can be
/// tried before the network tries them.
///
/// Exchanges are numbered as they come, and what befalls a number is fixed by the ``FaultPlan``: the same numbers fail in each
/// run from the same seed. All waits go by the call's clock. Safe to use from any number of tasks.
///
/// ```swift
/// let shaky = FaultInjectingTransport(transport, plan: .chance(seed: 7, [
///     (0.05, .fail(progress: .bodySent)), (0.05, .status(503)), (0.01, .truncate(after: 1000)),
/// ]))
/// ```
public final class FaultInjectingTransport: Transport {
    private struct Numbers {
        var seen = 0
        var befallen: [Int] = []
    }

    private let transport: any Transport
    private let plan: FaultPlan
    private let isExposed: @Sendable (URLRequest) -> Bool
    private let numbers = Mutex(Numbers())

    /// A transport that is exposed to faults.
    ///
    /// - Parameters:
    ///   - transport: sends what no fault keeps back.
    ///   - plan: what befalls which exchange.
    ///   - isExposed: whether the plan is for a request; others pass and are not numbered. All by default.
    public init(
        _ transport: any Transport,
        plan: FaultPlan,
        isExposed: @escaping @Sendable (URLRequest) -> Bool = { _ in true }
    ) {
        self.transport = transport
        self.plan = plan
        self.isExposed = isExposed
    }

    /// How many exchanges the plan was asked about.
    public var exposedCount: Int { numbers.withLock { $0.seen } }

    /// The numbers of those that met a fault, in order.
    public var befallen: [Int] { numbers.withLock { $0.befallen } }

    public var enforcesDeadline: Bool { transport.enforcesDeadline }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        guard let fault = nextFault(for: request) else {
            return try await transport.send(request, body: body, context: context)
        }
        try await wait(fault.wait, context)
        switch fault.kind {
        case .none:
            return try await transport.send(request, body: body, context: context)
        case .failure(let error):
            if let progress = error.progress, progress >= .bodySent {
                let response = try await transport.send(request, body: body, context: context)
                response.body.discard()
            }
            throw error
        case .silence:
            try await wait(.seconds(1 << 40), context)
            throw CancellationError()
        case .response(let status, let fields):
            return Response(status: status, fields: fields, url: request.url)
        case .truncation(let bytes):
            var response = try await transport.send(request, body: body, context: context)
            response.body = ResponseBody(TruncatedBody(response.body, bytes: bytes), length: response.body.length)
            return response
        }
    }

    private func nextFault(for request: URLRequest) -> Fault? {
        guard isExposed(request) else { return nil }
        return numbers.withLock { numbers in
            numbers.seen += 1
            let fault = plan.fault(for: numbers.seen)
            if fault != nil { numbers.befallen.append(numbers.seen) }
            return fault
        }
    }

    private func wait(_ length: Duration, _ context: CallContext) async throws {
        guard length > .zero else { return }
        let end = context.clock.now.advanced(by: length)
        guard let deadline = context.attemptDeadline, deadline < end else {
            return try await context.clock.sleep(until: end)
        }
        try await context.clock.sleep(until: deadline)
        throw ServiceError(.timeout, "Injected: the attempt's deadline passed.", progress: .bodySent)
    }
}
