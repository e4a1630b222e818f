// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Tells an attempt whether something beneath it has retried already and given up.
///
/// Layers of retries multiply: three of three attempts each make 27 sends of one call. The layer next to the failure knows
/// most of it, so it retries, and its failure is final for those above: they find the mark, whatever has become of the error
/// on its way up.
final class RetryScope: Sendable {
    /// The scope of the attempt that this task works for.
    @TaskLocal static var current: RetryScope?

    private struct State {
        var url: URL?
        var isExhausted = false
    }

    private let state = Mutex(State())

    /// Whether the request was retried beneath and given up.
    var wasRetried: Bool { state.withLock { $0.isExhausted } }

    /// An attempt begins with this request.
    func begin(_ request: URLRequest) {
        state.withLock { $0 = State(url: request.url) }
    }

    /// Notes how a call beneath ended; one to another URL, such as for a token, says nothing of the attempt.
    func ended(_ request: URLRequest, exhausted: Bool) {
        state.withLock { state in
            if state.url == request.url { state.isExhausted = exhausted }
        }
    }
}

extension [AttemptRecord] {
    /// Whether the attempts say that retrying went on until something forbade more of it.
    var areExhausted: Bool {
        switch last?.stopReason {
        case .budget, .serverForbids, .serverDelayTooLong, .gateClosed, .circuitOpen, .retriedBeneath: true
        case .attemptsExhausted, .deadline: count > 1
        default: false
        }
    }
}
