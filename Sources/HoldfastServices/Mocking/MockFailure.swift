// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

/// Why a ``ServiceMock`` refused a request, or was not satisfied at the end.
public struct MockFailure: LocalizedError, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// A request was received and none was expected.
        public static let noExpectation = Code("no-expectation")
        /// Another endpoint was expected.
        public static let wrongType = Code("wrong-type")
        /// Another method was expected.
        public static let wrongMethod = Code("wrong-method")
        /// Another path was expected.
        public static let wrongPath = Code("wrong-path")
        /// Other input was expected, or `validate` refused the request.
        public static let wrongInput = Code("wrong-input")
        /// Expected requests were not received.
        public static let unmetExpectations = Code("unmet-expectations")
    }

    /// The kind of failure.
    public let code: Code
    /// What was expected and what was received.
    public let message: String
    /// What `validate` threw.
    public let cause: (any Error)?

    init(_ code: Code, message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var errorDescription: String? { message }
    public var description: String { "\(code): \(message)" + (cause.map { " (\($0))" } ?? "") }

    /// The failure in the causes of an error, such as a `ServiceError` or an ``EndpointError``.
    public init?(in error: any Error) {
        var next: (any Error)? = error
        // Chains of causes are short, but this is not guaranteed.
        for _ in 0..<16 {
            switch next {
            case let failure as MockFailure:
                self = failure
                return
            case let error as ServiceError: next = error.cause
            case let error as EndpointError: next = error.cause
            default: return nil
            }
        }
        return nil
    }
}
