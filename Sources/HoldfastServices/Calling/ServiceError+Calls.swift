// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

extension ServiceError {
    /// The content of an accepted response is not what was expected.
    static func decodingFailed(as type: Any.Type, cause: any Error, _ response: Response) -> ServiceError {
        var error = ServiceError(
            .decodingFailed,
            "The content of the response (status \(response.status.rawValue)) cannot be decoded as \(type); compare the type "
                + "with the content, which is in this error's `response`.",
            cause: cause,
            progress: .headReceived,
            response: response
        )
        error.attempts = response.attempts
        return error
    }

    /// A response whose status is not accepted; one that a cache made because nothing may be sent is named as what it is.
    static func refused(_ response: Response, expected: ClosedRange<Int>) -> ServiceError {
        guard response.source == .synthesized, response.status == .gatewayTimeout, response.cacheDecision != nil else {
            return unacceptableStatus(response, expected: expected)
        }
        return ServiceError(
            .resourceUnavailable,
            "Nothing usable is stored and this call may not be sent; allow it to be, or ask for it earlier.",
            progress: .notSent,
            response: response
        )
    }
}
