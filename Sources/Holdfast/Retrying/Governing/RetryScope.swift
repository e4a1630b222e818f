// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Tells an attempt whether something beneath it has retried already and given up.
///
/// Layers of retries multiply: three of three attempts each make 27 sends of one call. The layer next to the failure knows
/// most of it, so it retries, and its failure is final for those above: they find the mark, whatever has become of the error
/// on its way up.
final class RetryScope: Sendable {
    /// The scope of the attempt that this task works for.
    @TaskLocal static var current: RetryScope?

    private let isExhausted = Atomic(false)

    /// Whether the last call beneath was retried and given up.
    var wasRetried: Bool { isExhausted.load(ordering: .acquiring) }

    /// Notes how a call beneath ended.
    func ended(exhausted: Bool) {
        isExhausted.store(exhausted, ordering: .releasing)
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
