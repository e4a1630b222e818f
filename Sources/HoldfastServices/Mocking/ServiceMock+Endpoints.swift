// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// Expectations of endpoints; these need a client from ``ServiceMock/client(of:configuration:)``.
extension ServiceMock {
    /// Expects a call of an endpoint of any kind, downloads included.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - respond: the response; an empty 200 by default.
    public func expect<Target: Endpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        add(MockExpectation(endpoint, path: path, input: nil, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint with this input, compared in encoded form.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - input: the expected input.
    ///   - validate: throws to refuse the request.
    ///   - respond: the response; an empty 200 by default.
    public func expect<Target: InEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        let input = EndpointInput.values(input, format: Target.inputFormat)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint with this input; otherwise like ``expect(_:path:input:validate:respond:)``.
    public func expect<Target: InOutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse
    ) {
        let input = EndpointInput.values(input, format: Target.inputFormat)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint and responds with a value as JSON.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - output: the value. For a format other than JSON, give the content with `respond`.
    ///   - encoder: encodes the value.
    /// - Throws: any error of the encoder.
    public func expect<Target: OutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        returning output: Target.Output,
        encoder: JSONEncoder = ServiceJSON.encoder()
    ) throws where Target.Output: Encodable {
        let answer = try MockResponse.json(output, encoder: encoder)
        add(MockExpectation(endpoint, path: path, input: nil, validate: validate, respond: answer))
    }

    /// Expects a call of an endpoint, with this input if given, and responds with a value as JSON; otherwise like
    /// ``expect(_:path:validate:returning:encoder:)``.
    public func expect<Target: InOutEndpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        input: Target.Input? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        returning output: Target.Output,
        encoder: JSONEncoder = ServiceJSON.encoder()
    ) throws where Target.Output: Encodable {
        let input = input.map { EndpointInput.values($0, format: Target.inputFormat) }
        let answer = try MockResponse.json(output, encoder: encoder)
        add(MockExpectation(endpoint, path: path, input: input, validate: validate, respond: answer))
    }
}
