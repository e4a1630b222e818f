// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Holdfast

    /// Converts the pipeline's errors to the client's, for call sites that catch the client's errors.
    enum ClientErrors {
        /// The client's error for `error`; the error itself if the client has none.
        static func clientError(of error: ServiceError) -> any Error {
            switch error.code {
            case .deadlineExceeded: return HTTPClientError.deadlineExceeded
            case .timeout: return error.cause ?? HTTPClientError.deadlineExceeded
            case .tooManyRedirects: return error.cause ?? HTTPClientError.redirectLimitReached
            // For a body that fails the client passes the error on, and for an invalid URL it has an error of its own.
            case .badRequest: return error.cause ?? error
            default: break
            }
            guard let cause = error.cause, cause is HTTPClientError || ClientFailure.beneath(cause) != nil else {
                return error
            }
            return cause
        }
    }
#endif
