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
}
