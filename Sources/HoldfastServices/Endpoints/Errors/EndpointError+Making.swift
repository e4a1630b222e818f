// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension EndpointError {
    /// What a caller of an endpoint sees of `error`, whatever it is.
    ///
    /// - Parameters:
    ///   - error: a `ServiceError`, an ``EndpointError``, which stays as it is, or any other.
    ///   - operationName: what the call does; counts where the error does not say it itself.
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

    /// Takes over what the error beneath knows of the exchange.
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

    /// The error as it travels through the pipeline: a ``ServiceError`` that retriers and hooks can judge, with this as its cause.
    func carried(by error: any Error) -> ServiceError {
        var carrier =
            error as? ServiceError
            ?? ServiceError(.other, "The response was rejected; see the cause.", progress: .headReceived)
        carrier.cause = self
        if carrier.response == nil { carrier.response = response }
        return carrier
    }
}
