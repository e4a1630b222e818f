// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Holdfast

    /// The pipeline's errors in the client's words, for call sites that catch what they always caught.
    enum ClientErrors {
        /// What a caller of the client expects in place of `error`; the error itself where the client has no word for it.
        static func clientError(of error: ServiceError) -> any Error {
            switch error.code {
            case .deadlineExceeded: return HTTPClientError.deadlineExceeded
            case .timeout: return error.cause ?? HTTPClientError.deadlineExceeded
            case .tooManyRedirects: return error.cause ?? HTTPClientError.redirectLimitReached
            // A body that fails, and a URL that is none: the client passes the one on, and has a word for the other.
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
