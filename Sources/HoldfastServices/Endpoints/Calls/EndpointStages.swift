// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

/// What an endpoint and its service do with a request and its response, stage by stage.
struct EndpointStages<Target: Endpoint>: Sendable {
    let endpoint: Target
    let service: Target.Service

    var coding: EndpointCoding { EndpointCoding(endpoint: endpoint, service: service) }

    /// Checks the status, and calls `validate` of service and endpoint.
    func judge(_ response: Response) throws {
        guard response.status.isSuccessful else {
            throw ServiceError.unacceptableStatus(response, expected: 200...299)
        }
        try validating(response) {
            try service.validate(response, for: endpoint)
            try endpoint.validate(response)
        }
    }

    /// Decodes what all responses have in common, and calls `validate` of service and endpoint on it.
    func judgeBasicResponse(of response: Response, _ content: Data) throws {
        typealias BasicResponse = Target.Service.BasicResponse
        guard BasicResponse.self != NoBasicResponse.self else { return }
        let basicResponse = try EndpointOutput<BasicResponse>.values().decode(response, content, coding)
        try validating(response) {
            try service.validate(basicResponse, for: endpoint)
            try endpoint.validate(basicResponse)
        }
    }

    private func validating(_ response: Response, validate: () throws -> Void) throws {
        do {
            try validate()
        } catch let error as ServiceError {
            throw error
        } catch  where !error.isCancellation {
            throw ServiceError(
                .other,
                "The response was refused by validate of \(Target.self) or its service; see the cause.",
                cause: RefusedByValidation(error: error),
                progress: .headReceived,
                response: response
            )
        }
    }

    /// The error of a refused response, with the error response that its content decodes to, if any.
    func refusal(of response: Response, _ content: Data, because error: any Error) -> any Error {
        if error.isCancellation { return error }
        var failure = EndpointError(error, operationName: Target.operationName)
        failure.response = response
        if let errorResponse = errorResponse(in: content) { failure = .parsed(errorResponse, original: failure) }
        return failure.carried(by: error)
    }

    private func errorResponse(in content: Data) -> Target.Service.ErrorResponse? {
        typealias ErrorResponse = Target.Service.ErrorResponse
        guard ErrorResponse.self != NoErrorResponse.self, !content.isEmpty else { return nil }
        return try? Target.outputFormat.decoder.decode(ErrorResponse.self, from: content, coding)
    }

    /// Asks the endpoint, then the service, what to do with a refused response.
    func handle(_ error: any Error, response: Response) -> ErrorHandling {
        var failure = EndpointError(error, operationName: Target.operationName)
        if failure.response == nil { failure.response = response }
        var handling = endpoint.handle(failure, response: response)
        if case .error(let left as EndpointError) = handling {
            handling = service.handle(left, response: response, for: endpoint)
        }
        if case .error(let left as EndpointError) = handling { return .error(left.carried(by: error)) }
        return handling
    }
}

/// The cause of an error that `validate` threw.
struct RefusedByValidation: Error, CustomStringConvertible {
    let error: any Error
    var description: String { "\(error)" }
}
