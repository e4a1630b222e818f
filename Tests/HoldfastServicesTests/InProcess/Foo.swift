// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The service `foo`, which does what the test at hand tells it: each call names its test in a field.
enum Foo: ServiceProtocol {
    typealias Part =
        @Sendable (
            _ request: URLRequest, _ response: HTTPURLResponse, _ responseReturn: @escaping responseReturnBlock,
            _ dataReturn: @escaping dataReturnBlock, _ requestComplete: @escaping requestCompleteBlock
        ) -> Void

    static let serviceIdentifier = "foo"
    private static let parts = Mutex<[String: Part]>([:])

    static func performRequest(
        _ request: URLRequest,
        response: HTTPURLResponse,
        responseReturn: @escaping responseReturnBlock,
        dataReturn: @escaping dataReturnBlock,
        requestComplete: @escaping requestCompleteBlock
    ) {
        let part = parts.withLock { $0[request.value(forHTTPHeaderField: "X-Part") ?? ""] }
        part?(request, response, responseReturn, dataReturn, requestComplete)
    }

    /// A request that `part` answers.
    static func request(_ text: String = "http://pmapi/foo", _ part: @escaping Part) throws -> URLRequest {
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        let name = UUID().uuidString
        parts.withLock { $0[name] = part }
        var request = URLRequest(url: url)
        request.setValue(name, forHTTPHeaderField: "X-Part")
        return request
    }
}

/// A router that knows ``Foo``, and what it was told of it.
struct FooRouter: Sendable {
    let router: ServiceRouter
    private let told: Told

    private final class Told: Sendable {
        let violations = Mutex<[ServiceContractViolation]>([])
        let metrics = Mutex<[ServiceMetrics]>([])
    }

    init(configuration: ServiceRouter.Configuration = ServiceRouter.Configuration()) {
        let told = Told()
        self.told = told
        var configuration = configuration
        configuration.onContractViolation = { violation in told.violations.withLock { $0.append(violation) } }
        configuration.onMetrics = { metrics in told.metrics.withLock { $0.append(metrics) } }
        router = ServiceRouter(types: [Foo.self], configuration: configuration)
    }

    var brokenRules: [ServiceContractViolation.Rule] { told.violations.withLock { $0.map(\.rule) } }
    var metrics: [ServiceMetrics] { told.metrics.withLock { $0 } }

    /// Answers a request, and reads the response to its end.
    func call(_ request: URLRequest, clock: any HoldfastClock = SystemClock()) async throws -> (Response, String) {
        let context = CallContext(clock: clock)
        let response = try await router.send(request, body: .carried(by: request), context: context)
        return (response, String(decoding: try await response.body.collect(), as: UTF8.self))
    }

    func call(_ part: @escaping Foo.Part) async throws -> (Response, String) {
        try await call(try Foo.request("http://pmapi/foo", part))
    }

    /// The error that a call, or its body, fails with; nil where it does not.
    func failure(_ part: @escaping Foo.Part) async -> ServiceError? {
        do {
            _ = try await call(part)
            return nil
        } catch {
            return error as? ServiceError
        }
    }
}

extension Data {
    init(_ text: String) { self = Data(Array(text.utf8)) }
}
