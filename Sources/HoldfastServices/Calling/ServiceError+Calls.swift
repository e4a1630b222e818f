// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
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
        let known: ServiceError? =
            switch error {
            case let error as ServiceError: error
            case let error as EndpointError: ServiceError(of: error)
            case let error as WebServiceError: error.serviceError
            case let error as DecodingError: error.serviceError
            case let error as URLError: error.serviceError
            default: nil
            }
        guard let known else { return nil }
        self = known
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

extension Error {
    /// The error with the call it belongs to, and with what a typed client knows about its cause.
    ///
    /// - hasSwitch: whether the service has a setting for the use of TLS.
    func named(_ request: URLRequest, hasSwitch: Bool) -> any Error {
        guard var error = naming(CallSubject(request)) as? ServiceError else { return self }
        if hasSwitch, error.code == .tls, !error.message.contains("usesSecureProtocol") {
            error.message +=
                " If it speaks plain HTTP, begin the service's apiUrl with http://, or set usesSecureProtocol to false."
        }
        return error
    }

    /// The error of a request that could not be built, with the call it belongs to.
    func refusing(_ call: @autoclosure () -> CallSubject) -> any Error {
        guard var refusal = self as? WebServiceError else { return naming(call()) }
        if refusal.call == nil { refusal.call = call() }
        return refusal
    }
}

extension ServiceError {
    /// The error for a request that cannot be sent as it is.
    static func badRequest(_ message: String, cause: (any Error)? = nil) -> ServiceError {
        ServiceError(.badRequest, message, cause: cause, progress: .notSent)
    }

    /// Runs `encode`. If it throws anything but a ``ServiceError``, that is the cause of one.
    ///
    /// - Parameter content: what is encoded, as the subject of a sentence.
    static func encoding<Encoded>(
        _ content: @autoclosure () -> String,
        by encode: () throws -> Encoded
    ) throws -> Encoded {
        do {
            return try encode()
        } catch let error as ServiceError {
            throw error
        } catch {
            let message = "\(content()) cannot be encoded; see the cause."
            throw ServiceError(.encodingFailed, message, cause: error, progress: .notSent)
        }
    }

    /// The error for accepted content that is not what was expected.
    static func decodingFailed(as type: Any.Type, cause: any Error, _ response: Response) -> ServiceError {
        let status = response.status.rawValue
        let message =
            response.body.bytesInMemory?.isEmpty == true
            ? "The response (status \(status)) has no content, so it cannot be decoded as \(type); expect no result, or "
                + "find out why the server sent none."
            : "The content of the response (status \(status)) cannot be decoded as \(type); compare the type with the "
                + "content, which is in this error's `response`."
        var error = ServiceError(
            .decodingFailed,
            message,
            cause: cause,
            progress: .headReceived,
            response: response
        )
        error.attempts = response.attempts
        return error
    }

    /// The error for a response whose status is not accepted; a 504 that the cache made because nothing may be sent gets its
    /// own error.
    static func refused(_ response: Response, expected: ClosedRange<Int>) -> ServiceError {
        guard response.source == .synthesized, response.status == .gatewayTimeout, response.cacheDecision != nil else {
            return unacceptableStatus(response, expected: expected)
        }
        return ServiceError(
            .resourceUnavailable,
            "The cache has no usable response, and this call may only be answered from the cache. Allow it to be sent, or fetch the response earlier.",
            progress: .notSent,
            response: response
        )
    }
}
