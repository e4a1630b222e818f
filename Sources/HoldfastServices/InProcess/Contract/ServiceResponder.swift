// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// The service's end of one call, which the three closures of ``ServiceProtocol`` use.
///
/// Only those closures hold it, so its deinitialization means that the service has released them all.
final class ServiceResponder: Sendable {
    private let exchange: ServiceExchange

    init(_ exchange: ServiceExchange) {
        self.exchange = exchange
    }

    func returnResponse(_ response: HTTPURLResponse) {
        exchange.apply { $0.returned(response) }
    }

    func returnData(_ data: Data?) {
        let chunk = data.map { ByteChunk(copying: $0) } ?? ByteChunk()
        exchange.apply { $0.returned(chunk) }
    }

    func completeRequest() {
        exchange.apply { $0.completed(orFail: exchange.failure(.completedBeforeResponse)) }
    }

    deinit {
        exchange.apply { $0.released(failing: exchange.failure(.neverCompleted)) }
    }
}

/// The exchange between a service and its caller in one call.
final class ServiceExchange: Sendable {
    private let state: Mutex<ServiceExchangeState>
    private let serviceIdentifier: String
    private let report: @Sendable (ServiceContractViolation) -> Void

    /// - Parameter report: is called for each violation, on the thread that caused it.
    init(
        serviceIdentifier: String,
        unreadLimit: Int,
        report: @escaping @Sendable (ServiceContractViolation) -> Void
    ) {
        state = Mutex(ServiceExchangeState(unreadLimit: unreadLimit))
        self.serviceIdentifier = serviceIdentifier
        self.report = report
    }

    /// Whether the caller has left.
    var isLeft: Bool { state.withLock { $0.isClosed } }

    /// Waits for the response; cancellation ends the call at once.
    func response(to url: URL) async throws -> Response {
        let head = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                if let result = state.withLock({ $0.takeHead(waiter) }) { waiter.resume(with: result) }
            }
        } onCancel: {
            leave()
        }
        return Response(
            status: StatusCode(head.statusCode),
            fields: HeaderFields(of: head),
            body: body(),
            url: head.url ?? url,
            source: .inProcess
        )
    }

    /// In memory if the service is already done.
    private func body() -> ResponseBody {
        guard let chunks = state.withLock({ $0.takeAll() }) else { return ResponseBody(ServiceBody(self)) }
        guard chunks.count > 1 else { return ResponseBody(chunks.first ?? ByteChunk()) }
        var all: [UInt8] = []
        all.reserveCapacity(chunks.reduce(0) { $0 + $1.count })
        for chunk in chunks { chunk.append(to: &all) }
        return ResponseBody(ByteChunk(all))
    }

    fileprivate func next() async throws -> ByteChunk? {
        if let result = state.withLock({ $0.takeChunk() }) { return try result.get() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                if let result = state.withLock({ $0.takeChunk(waiter) }) { waiter.resume(with: result) }
            }
        } onCancel: {
            leave()
        }
    }

    fileprivate func leave() {
        apply { $0.left() }
    }

    fileprivate func apply(_ change: (inout ServiceExchangeState) -> ServiceExchangeState.Action) {
        let action = state.withLock { change(&$0) }
        switch action {
        case .none: break
        case .report(let rule): report(violation(rule))
        case .giveHead(let waiter, let head): waiter.resume(returning: head)
        case .giveChunk(let waiter, let chunk): waiter.resume(returning: chunk)
        case .fail(let headWaiter, let chunkWaiter, let error, let rule):
            if let rule { report(violation(rule)) }
            headWaiter?.resume(throwing: error)
            chunkWaiter?.resume(throwing: error)
        }
    }

    fileprivate func failure(_ rule: ServiceContractViolation.Rule) -> ServiceError {
        let violation = violation(rule)
        return ServiceError(
            .protocolError,
            "\(violation) Fix the service; the cause names the rule.",
            cause: violation,
            progress: .bodySent
        )
    }

    private func violation(_ rule: ServiceContractViolation.Rule) -> ServiceContractViolation {
        ServiceContractViolation(rule, serviceIdentifier: serviceIdentifier)
    }
}

/// The caller's end of the content; ends the call when it is released.
private final class ServiceBody: ByteSource {
    private let exchange: ServiceExchange

    init(_ exchange: ServiceExchange) {
        self.exchange = exchange
    }

    func next() async throws -> ByteChunk? { try await exchange.next() }

    func cancel() { exchange.leave() }

    deinit { exchange.leave() }
}
