// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What one run cost.
struct RunResult: Sendable {
    let kind: ClientKind
    let side: ClientRun.Side
    /// What the service counted.
    let ledger: ServiceLedger
    /// What the people saw.
    let outcome: Dashboard.Outcome
    /// The time of the whole job.
    let duration: Duration
    /// What the cache spared; 0 before.
    let bytesSaved: Int
    let timeSaved: Duration
}
