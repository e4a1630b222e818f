// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What the loading system is told of one request.
enum LoadDelivery: Sendable {
    case response(HTTPURLResponse)
    case data(Data)
    case end
    case failure(URLError)

    var isLast: Bool {
        switch self {
        case .response, .data: false
        case .end, .failure: true
        }
    }
}

/// Where the loading of one request stands; pure, so that its order can be tested without sessions.
///
/// Deliveries go out in order, only between a start and the stop, and none after the last.
struct LoadState: Sendable {
    /// What a start asks for.
    enum Start: Sendable {
        /// Nothing was begun: begin.
        case begin
        /// Give these to the client.
        case deliver([LoadDelivery])
    }

    private enum Phase {
        case idle, loading, over
    }

    private var phase = Phase.idle
    private var isPaused = false
    private var waiting: [LoadDelivery] = []

    init() {}

    /// Whether nothing will be delivered any more.
    var isOver: Bool { phase == .over }

    /// The loading system starts the protocol: for the first time, after a pause, or because it was asked to call.
    mutating func start() -> Start {
        isPaused = false
        if phase == .idle {
            phase = .loading
            return .begin
        }
        return .deliver(take())
    }

    /// There is something to deliver; returns whether the loading system must be asked to call.
    mutating func add(_ deliveries: [LoadDelivery]) -> Bool {
        guard phase == .loading else { return false }
        waiting += deliveries
        return !isPaused
    }

    /// What is to be delivered now, once.
    mutating func take() -> [LoadDelivery] {
        guard phase == .loading, !isPaused else { return [] }
        let taken = waiting
        waiting = []
        if taken.last?.isLast == true { phase = .over }
        return taken
    }

    /// The task was suspended: what comes waits for it.
    mutating func pause() {
        isPaused = true
    }

    /// The task was cancelled, or is complete: nothing is delivered from now on.
    mutating func stop() {
        phase = .over
        waiting = []
    }
}
