// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Never retries; has no state, so one serves all calls.
public struct NilRetrier: Retrier {
    /// A retrier that always declines.
    public init() {}

    public func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
    {
        .stop(.retrierDeclined)
    }

    /// The factory of this retrier.
    public struct Factory: RetrierFactory {
        /// A factory.
        public init() {}

        public func create(for request: URLRequest) -> any Retrier { NilRetrier() }
    }
}

extension RetrierFactory where Self == NilRetrier.Factory {
    /// Never retries: exactly one send per call, or per hop of it.
    public static var never: NilRetrier.Factory { NilRetrier.Factory() }
}
