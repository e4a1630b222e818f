// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// How a flight ends.
extension Flight {
    /// What came of the exchange.
    enum Ending: Sendable {
        case answered(Answer)
        case failed(Failure)
        /// Nothing was sent, since another process fetches the same: look again.
        case elsewhere(Elsewhere)
    }

    /// A response, and what it takes to hand it to several readers.
    struct Answer: Sendable {
        /// The response, for the first reader as it is; others replace its body.
        let response: Response
        /// What the cache made of it.
        let outcome: HopOutcome
        /// What it nominates by Vary.
        let nominated: NominatedFields?
        /// Whether it is for all readers, and not for the first alone.
        let isShared: Bool
        /// The body, where it is a stream that several readers share.
        let body: SharedBody?
        let exchange: SentExchange?
        let attempt: Int
        /// The call that began the exchange.
        let leader: CallID
    }

    /// An exchange without a response.
    struct Failure: Sendable {
        let error: any Error
        /// What was sent last; nil where nothing was, so that the fault is on this side.
        let exchange: SentExchange?
        let attempt: Int
        /// Whether the last attempt ended where the deadline of the flight, as it was by then, cut it short.
        let wasCut: Bool
    }

    /// An exchange that was left to another process.
    struct Elsewhere: Sendable {
        /// What came of that one's; nil where it is not known yet.
        let outcome: LeaseOutcome?
        /// Whether the flight has waited for it.
        let wasAwaited: Bool
    }
}
