// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request that calls an endpoint, so that hooks can tell which one.
///
/// ```swift
/// if let call = request as? any EndpointRequest { print(type(of: call.endpoint).operationName) }
/// ```
public protocol EndpointRequest: Request {
    /// The type of the endpoint.
    associatedtype Target: Endpoint
    /// The endpoint that is called.
    var endpoint: Target { get }
}

/// One call of an endpoint, as a request.
///
/// Created by `makeRequest`; ``RequestHook``s see it as the scheduled request.
public struct EndpointCall<Target: Endpoint, Result: Sendable>: EndpointRequest {
    public let endpoint: Target
    private let service: Target.Service
    private let input: Swift.Result<EncodedInput, any Error>
    private let output: EndpointOutput<Result>
    private let progress: ProgressReport

    init(
        _ endpoint: Target,
        service: Target.Service,
        input: EndpointInput,
        output: EndpointOutput<Result>,
        progress: ProgressReport
    ) {
        self.endpoint = endpoint
        self.service = service
        self.output = output
        self.progress = progress
        // Encoded once, because query and content of one request come from one encoding; a failure is kept for the call to
        // throw.
        let coding = EndpointCoding(endpoint: endpoint, service: service)
        self.input = Swift.Result {
            if output.take == nil { try Target.outputFormat.check(Result.self) }
            return try input.encode(coding)
        }
    }

    var coding: EndpointCoding { EndpointCoding(endpoint: endpoint, service: service) }

    public var url: (any UrlConvertible)? { endpoint.baseURLOverride }
    public var usesSecureProtocol: Bool? { endpoint.baseURLOverride.map(\.isSecure) }
    public var method: HttpMethod { Target.method }
    public var authorizationRequirement: AuthorizationRequirement { Target.authorizationRequirement }
    public var timeout: Duration? { endpoint.timeout }
    public var contentLimit: Int { endpoint.contentLimit }
    public var routes: HttpRoute { HttpRoute(path: endpoint.path) }
    public var query: HttpQuery { get throws { try input.get().query } }
    public var body: HttpBody { get throws { try input.get().body } }

    public var options: CallOptions {
        var options = endpoint.options
        if output.take != nil { options.isDownload = true }
        return options
    }

    public var header: HttpHeader {
        service.header.contains(.accept) ? HttpHeader() : ["Accept": Target.outputFormat.accept]
    }

    public func prepare(_ request: URLRequest) async throws -> URLRequest {
        var request = request
        try await service.configure(&request, for: endpoint)
        try await endpoint.configure(&request)
        return request
    }

    public func receive(_ response: inout Response) async throws -> Result {
        guard let take = output.take else {
            response.body = progress.watching(response.body)
            return try await acceptContent(of: &response)
        }
        do {
            try check(response)
        } catch {
            let content = try await response.takeContent(upTo: contentLimit, isRefused: true, method: method)
            throw refusal(of: response, content, because: error)
        }
        response.body = progress.watching(response.body)
        return try await take(&response)
    }

    private func acceptContent(of response: inout Response) async throws -> Result {
        let isRefused = !response.status.isSuccessful
        let content = try await response.takeContent(upTo: contentLimit, isRefused: isRefused, method: method)
        return try accept(response, content: content)
    }

    public func accept(_ response: Response, content: Data) throws -> Result {
        do {
            try check(response)
            try checkBasicResponse(of: response, content)
            return try output.decode(response, content, coding)
        } catch {
            throw refusal(of: response, content, because: error)
        }
    }

    public func decode(_ data: Data) throws -> Result {
        try output.decode(Response(status: .ok, source: .synthesized), data, coding)
    }

    /// Asks the endpoint, then the service, what to do with a refused response.
    public func handle(_ error: any Error, response: Response) -> ErrorHandling {
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

/// What an endpoint and its service do with a response, stage by stage.
extension EndpointCall {
    /// Checks the status, and calls `validate` of service and endpoint.
    private func check(_ response: Response) throws {
        guard response.status.isSuccessful else {
            throw ServiceError.refused(response, expected: 200...299)
        }
        try validating(response) {
            try service.validate(response, for: endpoint)
            try endpoint.validate(response)
        }
    }

    /// Decodes what all responses have in common, and calls `validate` of service and endpoint on it.
    private func checkBasicResponse(of response: Response, _ content: Data) throws {
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
    private func refusal(of response: Response, _ content: Data, because error: any Error) -> any Error {
        if error.isCancellation { return error }
        var failure = EndpointError(error, operationName: Target.operationName)
        failure.response = response
        if let errorResponse = errorResponse(in: content) { failure = .parsed(errorResponse, original: failure) }
        return failure.carried(by: error)
    }

    private func errorResponse(in content: Data) -> Target.Service.ErrorResponse? {
        typealias ErrorResponse = Target.Service.ErrorResponse
        guard ErrorResponse.self != NoErrorResponse.self, !content.isEmpty else { return nil }
        return try? Target.outputFormat.decoder.decode(ErrorResponse.self, from: content, for: coding)
    }
}

extension Endpoint {
    /// Sends a call and names the error it failed with; what `mapError` or `handle` returned is thrown unchanged.
    func send<Result>(
        to client: ServiceClient<Service>?,
        input: EndpointInput = .nothing,
        output: EndpointOutput<Result>,
        onProgress: EndpointProgress?
    ) async throws(Service.RequestError) -> DecodedResponse<Result> {
        let client = client ?? Service.current
        let progress = ProgressReport(onProgress)
        progress.begin()
        do {
            let call = EndpointCall(self, service: client.service, input: input, output: output, progress: progress)
            let answer = try await client.response(to: call)
            progress.end()
            return answer
        } catch {
            guard error is ServiceError || error is EndpointError || error is URLError,
                let named = EndpointError(error, operationName: Self.operationName) as? Service.RequestError
            else { throw error }
            throw named
        }
    }
}

extension EndpointCall: ContentChecking {
    func check(_ response: inout Response) async throws {
        // The content of a download goes to a file that belongs to the call.
        guard output.take == nil else { return try check(response) }
        _ = try await acceptContent(of: &response)
    }
}

/// The cause of an error that `validate` threw.
struct RefusedByValidation: Error, CustomStringConvertible {
    let error: any Error
    var description: String { "\(error)" }
}

/// Is called with the received share of a response: 0 when the call begins, then growing fractions below 1 if the length is
/// known, and finally 1 on success.
///
/// Called within the call, on whatever thread it runs, one at a time: return quickly. What is sent does not count, because
/// URLSession takes it as a whole.
public typealias EndpointProgress = @Sendable (_ fraction: Double) -> Void

/// Reports progress in order and never backward, however often the call is sent.
final class ProgressReport: Sendable {
    private let report: EndpointProgress?
    private let reached = Mutex(0.0)

    init(_ report: EndpointProgress?) { self.report = report }

    func begin() { report?(0) }

    func end() { report?(1) }

    /// The same body; reports what is read from it.
    func watching(_ body: ResponseBody) -> ResponseBody {
        guard report != nil, let source = body.source, let length = body.length, length > 0 else { return body }
        let watched = WatchedBody(source, received: { self.advance(to: Double($0.upperBound) / Double(length)) })
        return ResponseBody(watched, length: length)
    }

    private func advance(to fraction: Double) {
        let isFurther = reached.withLock { reached in
            guard fraction > reached, fraction < 1 else { return false }
            reached = fraction
            return true
        }
        if isFurther { report?(fraction) }
    }
}
