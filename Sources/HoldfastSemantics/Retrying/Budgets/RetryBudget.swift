// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many retries the calls of a partition may make together: what keeps a fleet of clients from finishing off a server.
public struct RetryBudget: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case unlimited
    }

    package let kind: Kind

    /// No limit: for strategies of old, and for servers that nobody else uses.
    public static let unlimited = RetryBudget(kind: .unlimited)

    /// A tenth of the fresh calls, and one retry in two seconds beside.
    public static let ratio = RetryBudget(kind: .unlimited)
}
