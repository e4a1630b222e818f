// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The service's end of one call, which the three closures of ``ServiceProtocol`` use.
///
/// Only those closures hold it, so its deinitialization means that the service has released them all.
final class ServiceResponder: Sendable {
    private let exchange: ServiceExchange

    init(_ exchange: ServiceExchange) { self.exchange = exchange }

    func returnResponse(_ response: HTTPURLResponse) { exchange.apply { $0.returned(response) } }

    func returnData(_ data: Data?) {
        let chunk = data.map { ByteChunk(copying: $0) } ?? ByteChunk()
        exchange.apply { $0.returned(chunk) }
    }

    func completeRequest() {
        exchange.apply { $0.completed(orFail: exchange.failure(.completedBeforeResponse)) }
    }

    deinit { exchange.apply { $0.released(failing: exchange.failure(.neverCompleted)) } }
}

/// The exchange between a service and its caller in one call.
final class ServiceExchange: Sendable {
    private let state: Mutex<ServiceExchangeState>
    private let serviceIdentifier: String
    private let report: @Sendable (ServiceContractViolation) -> Void

    /// - Parameter report: is called for each violation, on the thread that caused it.
    init(serviceIdentifier: String, unreadLimit: Int, report: @escaping @Sendable (ServiceContractViolation) -> Void) {
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
            fields: head.head.fields,
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

    fileprivate func leave() { apply { $0.left() } }

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

    init(_ exchange: ServiceExchange) { self.exchange = exchange }

    func next() async throws -> ByteChunk? { try await exchange.next() }

    func cancel() { exchange.leave() }

    deinit { exchange.leave() }
}

/// The state of one service call, and what its caller has not taken yet; the contract as a value.
struct ServiceExchangeState {
    typealias HeadWaiter = CheckedContinuation<HTTPURLResponse, any Error>
    typealias ChunkWaiter = CheckedContinuation<ByteChunk?, any Error>
    typealias Rule = ServiceContractViolation.Rule

    /// What to do after releasing the lock.
    enum Action: Sendable {
        case none
        case report(Rule)
        case giveHead(HeadWaiter, HTTPURLResponse)
        case giveChunk(ChunkWaiter, ByteChunk?)
        case fail(HeadWaiter?, ChunkWaiter?, any Error, Rule?)
    }

    private enum Phase {
        case begun
        case responded
        case completed
        /// The caller left, or failed for a reason that is not the service's: whatever the service still does is ignored.
        case closed
    }

    private let unreadLimit: Int
    private var phase = Phase.begun
    private var head: HTTPURLResponse?
    private var failure: (any Error)?
    private var headWaiter: HeadWaiter?
    private var chunkWaiter: ChunkWaiter?
    private var chunks = Queue<ByteChunk>()
    private var unread = 0

    init(unreadLimit: Int) { self.unreadLimit = unreadLimit }

    /// Whether nobody waits for the service any more.
    var isClosed: Bool { phase == .closed }

    // MARK: What the service does

    mutating func returned(_ response: HTTPURLResponse) -> Action {
        switch phase {
        case .begun:
            phase = .responded
            if let waiter = headWaiter.take() { return .giveHead(waiter, response) }
            head = response
            return .none
        case .responded: return .report(.responseReturnedTwice)
        case .completed: return .report(.calledAfterCompletion)
        case .closed: return .none
        }
    }

    mutating func returned(_ chunk: ByteChunk) -> Action {
        switch phase {
        case .begun: return .report(.dataBeforeResponse)
        case .completed: return .report(.calledAfterCompletion)
        case .closed: return .none
        case .responded: break
        }
        guard !chunk.isEmpty else { return .none }
        let (sum, overflows) = unread.addingReportingOverflow(chunk.count)
        guard !overflows, sum <= unreadLimit else {
            phase = .closed
            let error = ServiceError(
                .bodyTooLarge,
                "The service returned more than \(unreadLimit) bytes ahead of their reader; read faster, or raise the router's unreadLimit.",
                progress: .bytesReceived
            )
            return fail(error, rule: nil)
        }
        if let waiter = chunkWaiter.take() { return .giveChunk(waiter, chunk) }
        chunks.append(chunk)
        unread = sum
        return .none
    }

    /// - Parameter error: what the caller fails with if there is no response.
    mutating func completed(orFail error: @autoclosure () -> ServiceError) -> Action {
        switch phase {
        case .begun:
            phase = .completed
            return fail(error(), rule: .completedBeforeResponse)
        case .responded:
            phase = .completed
            guard let waiter = chunkWaiter.take() else { return .none }
            return .giveChunk(waiter, nil)
        case .completed: return .report(.calledAfterCompletion)
        case .closed: return .none
        }
    }

    /// The service released all its closures and can do nothing more.
    mutating func released(failing error: @autoclosure () -> ServiceError) -> Action {
        switch phase {
        case .begun, .responded:
            phase = .closed
            return fail(error(), rule: .neverCompleted)
        case .completed, .closed: return .none
        }
    }

    // MARK: What the caller does

    /// The head or the failure, if known; otherwise `waiter` waits.
    mutating func takeHead(_ waiter: HeadWaiter) -> Result<HTTPURLResponse, any Error>? {
        if let head { return .success(head) }
        if let failure { return .failure(failure) }
        headWaiter = waiter
        return nil
    }

    /// The next chunk, the end or the failure, if there is one; otherwise nil.
    mutating func takeChunk() -> Result<ByteChunk?, any Error>? {
        if let failure { return .failure(failure) }
        if let chunk = chunks.popFirst() {
            unread -= chunk.count
            return .success(chunk)
        }
        return phase == .completed ? .success(nil) : nil
    }

    /// The same; if there is nothing, `waiter` waits.
    mutating func takeChunk(_ waiter: ChunkWaiter) -> Result<ByteChunk?, any Error>? {
        if let result = takeChunk() { return result }
        guard chunkWaiter == nil else { return .failure(ServiceError.secondReader) }
        chunkWaiter = waiter
        return nil
    }

    /// All chunks, if the service is done; nil otherwise.
    mutating func takeAll() -> [ByteChunk]? {
        guard phase == .completed, failure == nil else { return nil }
        unread = 0
        return chunks.takeAll()
    }

    /// The caller does not want any more.
    mutating func left() -> Action {
        guard failure == nil else { return .none }
        if phase != .completed { phase = .closed }
        head = nil
        return fail(CancellationError(), rule: nil)
    }

    private mutating func fail(_ error: any Error, rule: Rule?) -> Action {
        failure = error
        chunks = Queue()
        unread = 0
        return .fail(headWaiter.take(), chunkWaiter.take(), error, rule)
    }
}
