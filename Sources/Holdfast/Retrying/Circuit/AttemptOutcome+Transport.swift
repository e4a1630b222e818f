// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

extension AttemptOutcome {
    /// How an attempt ended, for those who stand around a transport.
    ///
    /// An attempt that is cancelled after its own deadline was not given up by anybody: the pipeline cuts short a transport
    /// that does not mind deadlines itself, and that is a timeout.
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
