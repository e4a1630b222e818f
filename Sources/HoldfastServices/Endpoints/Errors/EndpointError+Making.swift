// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension EndpointError {
    /// The error that a caller of an endpoint sees for `error`.
    ///
    /// - Parameters:
    ///   - error: a `ServiceError`, an ``EndpointError``, which stays as it is, or any other error.
    ///   - operationName: what the call does; used if the error does not say it.
    public init(_ error: any Error, operationName: String? = nil) {
        switch error {
        case let error as EndpointError: self = error
        case let error as ServiceError: self = EndpointError(error)
        case let error as URLError: self = EndpointError(error)
        case _ where error.isCancellation:
            self.init("The call was cancelled.", code: .cancelled, cause: error)
        default:
            self.init(
                "An unexpected error occurred.",
                code: .other,
                details: "\(error)",
                isInternal: true,
                cause: error
            )
        }
        if self.operationName == nil { self.operationName = operationName }
    }

    private init(_ error: ServiceError) {
        if var carried = error.cause as? EndpointError {
            carried.adopt(error)
            self = carried
            return
        }
        if let refused = error.cause as? RefusedByValidation {
            self.init(refused)
            adopt(error)
            return
        }
        let (code, reason, isInternal) = EndpointError.words(for: error)
        self.init(reason, code: code, details: error.description, isInternal: isInternal, cause: error)
        adopt(error)
    }

    /// Copies what the underlying error knows about the exchange.
    private mutating func adopt(_ error: ServiceError) {
        if response == nil { response = error.response }
        retryAfter = error.retryAfter
        attempts = error.attempts.isEmpty ? error.response?.attempts ?? [] : error.attempts
    }

    private init(_ refused: RefusedByValidation) {
        if let own = refused.error as? EndpointError {
            self = own
        } else {
            let reason = (refused.error as? any LocalizedError)?.errorDescription
            self.init(
                reason ?? "The server reported a failure.",
                details: "\(refused.error)",
                isInternal: reason == nil,
                cause: refused.error
            )
        }
    }

    private init(_ error: URLError) {
        let (code, reason) = EndpointError.words(for: error.code)
        self.init(
            reason,
            code: code,
            details: "URLError \(error.code.rawValue)",
            isInternal: code == .other,
            cause: error
        )
    }

    /// The error as it goes through the pipeline: a ``ServiceError`` that retriers and hooks understand, with this error as its
    /// cause.
    func carried(by error: any Error) -> ServiceError {
        var carrier =
            error as? ServiceError
            ?? ServiceError(.other, "The response was rejected; see the cause.", progress: .headReceived)
        carrier.cause = self
        if carrier.response == nil { carrier.response = response }
        return carrier
    }
}
