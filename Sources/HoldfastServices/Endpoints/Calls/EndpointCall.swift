// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage

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
    let stages: EndpointStages<Target>
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
        stages = EndpointStages(endpoint: endpoint, service: service)
        self.output = output
        self.progress = progress
        // Encoded once, because query and content of one request come from one encoding; a failure is kept for the call to
        // throw.
        let coding = stages.coding
        self.input = Swift.Result {
            try output.check(Target.outputFormat)
            return try input.encode(coding)
        }
    }

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
        stages.service.header.contains(.accept) ? HttpHeader() : ["Accept": Target.outputFormat.accept]
    }

    public func prepare(_ request: URLRequest) async throws -> URLRequest {
        var request = request
        try await stages.service.configure(&request, for: endpoint)
        try await endpoint.configure(&request)
        return request
    }

    public func receive(_ response: inout Response) async throws -> Result {
        if let take = output.take { return try await take(&response) }
        response.body = progress.watching(response.body)
        let isRefused = !response.status.isSuccessful
        let bytes = try await response.takeContent(upTo: contentLimit, isRefused: isRefused)
        return try accept(response, content: bytes.withUnsafeBytes { Data($0) })
    }

    public func accept(_ response: Response, content: Data) throws -> Result {
        do {
            try stages.judge(response)
            try stages.judgeBasicResponse(of: response, content)
            return try output.decode(response, content, stages.coding)
        } catch {
            throw stages.refusal(of: response, content, because: error)
        }
    }

    public func decode(_ data: Data) throws -> Result {
        try output.decode(Response(status: .ok, source: .synthesized), data, stages.coding)
    }

    public func handle(_ error: any Error, response: Response) -> ErrorHandling {
        stages.handle(error, response: response)
    }
}

extension Endpoint {
    /// Sends a call and names the error it failed with; what `mapError` or `handle` returned is thrown unchanged.
    func send<Result>(
        to client: ServiceClient<Service>,
        onProgress: EndpointProgress?,
        makeCall: (Service, ProgressReport) -> EndpointCall<Self, Result>
    ) async throws(Service.RequestError) -> DecodedResponse<Result> {
        let progress = ProgressReport(onProgress)
        progress.begin()
        do {
            let answer = try await client.response(to: makeCall(client.service, progress))
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

extension EndpointCall: ContentJudging {
    func judge(_ response: inout Response) async throws {
        // The content of a download goes to a file that belongs to the call.
        guard output.take == nil else { return try stages.judge(response) }
        let isRefused = !response.status.isSuccessful
        let bytes = try await response.takeContent(upTo: contentLimit, isRefused: isRefused)
        _ = try accept(response, content: bytes.withUnsafeBytes { Data($0) })
    }
}
