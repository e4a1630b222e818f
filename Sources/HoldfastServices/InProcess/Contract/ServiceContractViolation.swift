// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// How a ``ServiceProtocol`` broke the contract of its three closures.
///
/// Where the caller cannot be given a whole answer it is the `cause` of the `ServiceError` that the call fails with; always it
/// goes to ``ServiceRouter/Configuration/onContractViolation`` and to the observers of the pipeline above, as an event
/// ``Holdfast/ServiceEvent/Name/serviceContractViolated`` whose detail is its ``description``.
public struct ServiceContractViolation: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// A rule that can be broken.
    public struct Rule: Sendable, Hashable, CustomStringConvertible {
        /// The rule, and what became of the call where it was broken.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// `responseReturn` was called again: the first response stands, the second goes nowhere.
        public static let responseReturnedTwice = Rule(
            "responseReturn must be called once; the first response stands, this one was ignored."
        )
        /// `dataReturn` was called before `responseReturn`: the bytes go nowhere, and the call goes on.
        public static let dataBeforeResponse = Rule(
            "dataReturn must not be called before responseReturn; these bytes were ignored."
        )
        /// `requestComplete` was called before `responseReturn`: the call fails with `.protocolError`.
        public static let completedBeforeResponse = Rule(
            "requestComplete must not be called before responseReturn; the call failed."
        )
        /// A closure was called after `requestComplete`: it has no effect.
        public static let calledAfterCompletion = Rule(
            "Nothing must be called after requestComplete; this call of a closure was ignored."
        )
        /// All three closures were let go of before `requestComplete` was called: the call, or its body where the response was
        /// there already, fails with `.protocolError`.
        public static let neverCompleted = Rule(
            "requestComplete must be called; the service let go of its closures before, so the call failed."
        )
    }

    /// The service that broke it.
    public let serviceIdentifier: String
    /// The rule that was broken.
    public let rule: Rule

    /// A breach of `rule`.
    public init(_ rule: Rule, serviceIdentifier: String) {
        self.rule = rule
        self.serviceIdentifier = serviceIdentifier
    }

    public var description: String { "Service \(serviceIdentifier): \(rule)" }
    public var errorDescription: String? { description }
}
