// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct CatalogService: InProcessService {
    let serviceIdentifier = "catalog"
    let titles: [String]

    func respond(to request: URLRequest, body: RequestBody) async throws -> Response {
        guard Http.Method(request) == .get else {
            return Response(status: .methodNotAllowed, fields: ["Allow": "GET"])
        }
        return Response(
            status: .ok,
            fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=60"],
            body: ResponseBody { [titles] writer in
                for title in titles { try await writer.write(title + "\n") }
            }
        )
    }
}

enum FooService: ServiceProtocol {
    static let serviceIdentifier = "foo"

    static func performRequest(
        _ request: URLRequest,
        response: HTTPURLResponse,
        responseReturn: @escaping responseReturnBlock,
        dataReturn: @escaping dataReturnBlock,
        requestComplete: @escaping requestCompleteBlock
    ) {
        guard Http.Method(request) == .get else {
            let headers = ["Allow": "GET"]
            return respondWithErrorStatus(.methodNotAllowed, response, responseReturn, requestComplete, headers)
        }
        guard request.url?.lastPathComponent == "bar" else {
            return respondWithErrorStatus(
                .notFound,
                description: "foo knows nothing but bar.",
                dataReturn: dataReturn,
                response: response,
                responseReturn: responseReturn,
                requestComplete: requestComplete
            )
        }
        responseReturn(createResponse(.ok, response: response, responseHeaders: ["Cache-Control": "max-age=60"]))
        dataReturn(Data("foo, ".utf8))
        dataReturn(Data("bar".utf8))
        requestComplete()
    }
}

struct OfflineFallback: ServiceHook {
    let router: ServiceRouter

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        guard (error as? ServiceError)?.code == .offline else { return nil }
        return try? await router.send(request, body: context.body, context: context)
    }
}

@Suite("docs/services/in-process-services.md", .timeLimit(.minutes(20)))
struct InProcessServicesPageTests {
    private let url = URL(string: "https://api.example.com/catalog/all")

    @Test("A service and its router")
    func router() async throws {
        let router = ServiceRouter(services: [CatalogService(titles: ["Emma", "Persuasion"])])
        let pipeline = Pipeline(transport: router, cache: .default, retrierFactory: .default)
        let response = try await router.processRequest(
            serviceId: "catalog",
            extraPath: "all?by=title",
            through: pipeline
        )
        let text = String(decoding: try await response.body.collect(), as: UTF8.self)
        #expect(text == "Emma\nPersuasion\n")
        #expect(response.url?.absoluteString == "http://pmapi/catalog/all?by=title")
        await pipeline.drain()
        let again = try await router.processRequest(serviceId: "catalog", extraPath: "all?by=title", through: pipeline)
        #expect(again.source == .fresh)
        let refused = try await router.processRequest(serviceId: "catalog", extraPath: nil, method: .put, data: nil)
        #expect(refused.status == .methodNotAllowed)
    }

    @Test("P-T2, P-T24, P-T25, P-T26: the service foo of three closures")
    func foo() async throws {
        let router = ServiceRouter(types: [FooService.self])
        let pipeline = Pipeline(transport: router, cache: .default, retrierFactory: .default)
        let response = try await router.processRequest(serviceId: "foo", extraPath: "bar", through: pipeline)
        #expect(try await response.body.data() == Data("foo, bar".utf8))
        await pipeline.drain()
        let again = try await router.processRequest(serviceId: "foo", extraPath: "bar", through: pipeline)
        #expect(again.source == .fresh)
        let refused = try await router.processRequest(serviceId: "foo", extraPath: "bar", method: .delete, data: nil)
        #expect(refused.status == .methodNotAllowed)
        #expect(refused.fields[.allow] == "GET")
        let unknown = try await router.processRequest(serviceId: "foo", extraPath: "baz", through: pipeline)
        #expect(unknown.status == .notFound)
        #expect(unknown.fields[.contentType] == "text/plain; charset=utf-8")
        #expect(try await unknown.body.data() == Data("foo knows nothing but bar.".utf8))
    }

    @Test("As a mock")
    func mock() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        let request = URLRequest(url: try #require(url))
        let calls = CountWatch()
        let catalog = AnyInProcessService("catalog") { request, body in
            calls.increment()
            return calls.count == 1 ? Response(status: .serviceUnavailable) : Response(status: .ok)
        }
        let mock = ServiceRouter(apiHostname: "api.example.com", services: [catalog], next: ScriptedTransport([]))
        let pipeline = Pipeline(transport: mock, retrierFactory: .default, configuration: configuration)
        let response = try await pipeline.send(request)
        #expect(response.status == .ok)
        #expect(response.attempts.map(\.status) == [503, 200])
    }

    @Test("As an offline fallback")
    func offline() async throws {
        let network = ScriptedTransport([.fail(.offline, progress: .notSent)])
        let request = URLRequest(url: try #require(url))
        let router = ServiceRouter(
            apiHostname: "api.example.com",
            services: [CatalogService(titles: ["Saved: Emma"])]
        )
        let pipeline = Pipeline(transport: network, hooks: [OfflineFallback(router: router)])
        let response = try await pipeline.send(request)
        #expect(response.source == .inProcess)
        #expect(try await response.body.data() == Data("Saved: Emma\n".utf8))
    }

    @Test("Metrics")
    func metrics() async throws {
        let lines = Mutex<[String]>([])
        let log: @Sendable (String) -> Void = { line in lines.withLock { $0.append(line) } }
        var configuration = ServiceRouter.Configuration()
        configuration.onMetrics = { metrics in
            log("\(metrics.method) \(metrics.path): \(metrics.bytesReceived) bytes in \(metrics.milliseconds) ms")
        }
        configuration.onContractViolation = { violation in log("\(violation)") }
        let router = ServiceRouter(types: [FooService.self], configuration: configuration)
        _ = try await router.processRequest(serviceId: "foo", extraPath: "bar").body.collect()
        #expect(lines.withLock { $0.first }?.hasPrefix("GET /foo/bar: 8 bytes in ") == true)
    }
}
