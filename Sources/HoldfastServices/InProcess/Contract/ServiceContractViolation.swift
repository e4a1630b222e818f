// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A service's breach of the contract of ``ServiceProtocol``'s three closures.
///
/// If the caller cannot get a complete response, it is the `cause` of the call's `ServiceError`. In every case it goes to
/// ``ServiceRouter/Configuration/onContractViolation`` and to the observers of the pipeline above, as an event
/// ``Holdfast/ServiceEvent/Name/serviceContractViolated`` whose detail is its ``description``.
public struct ServiceContractViolation: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// A rule of the contract.
    public struct Rule: Sendable, Hashable, CustomStringConvertible {
        /// The rule, and what happened to the call that broke it.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// `responseReturn` was called again: the first response is used, the second is ignored.
        public static let responseReturnedTwice = Rule(
            "responseReturn must be called once; the first response was used, and this one was ignored."
        )
        /// `dataReturn` was called before `responseReturn`: the bytes are ignored, and the call goes on.
        public static let dataBeforeResponse = Rule(
            "dataReturn must not be called before responseReturn; these bytes were ignored."
        )
        /// `requestComplete` was called before `responseReturn`: the call fails with `.protocolError`.
        public static let completedBeforeResponse = Rule(
            "requestComplete must not be called before responseReturn; the call failed."
        )
        /// A closure was called after `requestComplete`: it has no effect.
        public static let calledAfterCompletion = Rule(
            "No closure may be called after requestComplete; this call was ignored."
        )
        /// All three closures were released before `requestComplete` was called: the call, or its body if the response had
        /// already arrived, fails with `.protocolError`.
        public static let neverCompleted = Rule(
            "requestComplete must be called; the service released its closures without calling it, so the call failed."
        )
    }

    /// The service that broke it.
    public let serviceIdentifier: String
    /// The rule that was broken.
    public let rule: Rule

    /// Creates a violation of `rule`.
    public init(_ rule: Rule, serviceIdentifier: String) {
        self.rule = rule
        self.serviceIdentifier = serviceIdentifier
    }

    public var description: String { "Service \(serviceIdentifier): \(rule)" }
    public var errorDescription: String? { description }
}
