// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

extension ServiceError {
    /// What is known about a call that failed, whichever typed client threw the error and whatever its type: code, progress,
    /// response, attempts.
    ///
    /// ```swift
    /// catch {
    ///     print(ServiceError(underlying: error)?.attempts.count ?? 0, "attempts")
    /// }
    /// ```
    ///
    /// Nil for errors that are not about a call, such as `CancellationError`, `EncodingError`, and errors of your own code.
    public init?(underlying error: any Error) {
        switch error {
        case let error as ServiceError: self = error
        case let error as EndpointError: self = ServiceError(of: error)
        case let error as WebServiceError:
            guard let known = error.serviceError else { return nil }
            self = known
        case let error as DecodingError:
            guard let known = error.serviceError else { return nil }
            self = known
        case let error as URLError:
            guard let known = error.serviceError else { return nil }
            self = known
        default: return nil
        }
    }

    private init(of error: EndpointError) {
        switch error.cause {
        case let cause as ServiceError: self = cause
        case let cause as EndpointError: self = ServiceError(of: cause)
        default: self.init(.other, error.reason, cause: error, response: error.response)
        }
        if response == nil { response = error.response }
        if attempts.isEmpty { attempts = error.attempts }
        if retryAfter == nil { retryAfter = error.retryAfter }
    }
}
