// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// Expectations of endpoints; the client must come from ``ServiceMock/client(of:configuration:)``.
extension ServiceMock {
    /// Expects a call of an endpoint of any kind, downloads included.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - respond: the answer; an empty 200 by default.
    public func expect<Target: Endpoint>(
        _ endpoint: Target.Type,
        path: String? = nil,
        validate: (@Sendable (MockRequest) throws -> Void)? = nil,
        respond: MockResponse = .status(200)
    ) {
        add(MockExpectation(endpoint, path: path, input: nil, validate: validate, respond: respond))
    }

    /// Expects a call of an endpoint with this input, compared as it is sent.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - input: what is sent.
    ///   - validate: throws to refuse the request.
    ///   - respond: the answer; an empty 200 by default.
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

    /// Expects a call of an endpoint with this input; as ``expect(_:path:input:validate:respond:)`` otherwise.
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

    /// Expects a call of an endpoint and answers with JSON of a value.
    ///
    /// - Parameters:
    ///   - endpoint: the endpoint's type.
    ///   - path: the endpoint's path; nil, the default: any.
    ///   - validate: throws to refuse the request.
    ///   - output: the answer. For a format other than JSON, give the content by `respond`.
    ///   - encoder: what encodes it.
    /// - Throws: what the encoder throws.
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

    /// Expects a call of an endpoint, with this input where it is given, and answers with JSON of a value; as
    /// ``expect(_:path:validate:returning:encoder:)`` otherwise.
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
