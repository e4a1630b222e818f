// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

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
    private var incoming: [ByteChunk] = []
    /// The oldest chunk is last.
    private var outgoing: [ByteChunk] = []
    private var unread = 0

    init(unreadLimit: Int) {
        self.unreadLimit = unreadLimit
    }

    /// Whether nobody waits for the service any more.
    var isClosed: Bool { phase == .closed }

    // MARK: What the service does

    mutating func returned(_ response: HTTPURLResponse) -> Action {
        switch phase {
        case .begun:
            phase = .responded
            guard let waiter = headWaiter else {
                head = response
                return .none
            }
            headWaiter = nil
            return .giveHead(waiter, response)
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
            return fail(ServiceExchangeState.tooLarge(unreadLimit), rule: nil)
        }
        if let waiter = chunkWaiter {
            chunkWaiter = nil
            return .giveChunk(waiter, chunk)
        }
        incoming.append(chunk)
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
            guard let waiter = chunkWaiter else { return .none }
            chunkWaiter = nil
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
        if outgoing.isEmpty {
            outgoing = incoming.reversed()
            incoming = []
        }
        if let chunk = outgoing.popLast() {
            unread -= chunk.count
            return .success(chunk)
        }
        return phase == .completed ? .success(nil) : nil
    }

    /// The same; if there is nothing, `waiter` waits.
    mutating func takeChunk(_ waiter: ChunkWaiter) -> Result<ByteChunk?, any Error>? {
        if let result = takeChunk() { return result }
        guard chunkWaiter == nil else { return .failure(ServiceExchangeState.secondReader) }
        chunkWaiter = waiter
        return nil
    }

    /// All chunks, if the service is done; nil otherwise.
    mutating func takeAll() -> [ByteChunk]? {
        guard phase == .completed, failure == nil else { return nil }
        defer {
            incoming = []
            outgoing = []
            unread = 0
        }
        return outgoing.reversed() + incoming
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
        incoming = []
        outgoing = []
        unread = 0
        defer {
            headWaiter = nil
            chunkWaiter = nil
        }
        return .fail(headWaiter, chunkWaiter, error, rule)
    }

    private static func tooLarge(_ limit: Int) -> ServiceError {
        ServiceError(
            .bodyTooLarge,
            "The service returned more than \(limit) bytes ahead of their reader; read faster, or raise the router's unreadLimit.",
            progress: .bytesReceived
        )
    }

    private static let secondReader = ServiceError(
        .badRequest,
        "Two tasks read one streamed body at a time; let one task read it, or collect it first."
    )
}
