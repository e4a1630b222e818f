// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension Path {
    /// A pipeline with a cache over a store, for calls of one thread.
    static func diskPipeline(over store: any CacheStore, on line: Line) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = StillClock()
        configuration.executor = line
        return Pipeline(
            transport: ImmediateTransport(),
            cache: HTTPCache(store: store),
            retrierFactory: .never,
            configuration: configuration
        )
    }

    /// Whole calls, with a transport that answers at once.
    static func calls(on line: Line) -> [Path] {
        var configuration = PipelineConfiguration()
        configuration.clock = StillClock()
        configuration.executor = line
        let transport = ImmediateTransport()
        func pipeline(
            _ hooks: [any ServiceHook] = [],
            cache: HTTPCache? = nil,
            retrierFactory: any RetrierFactory = .never
        ) -> Pipeline {
            Pipeline(
                transport: transport,
                cache: cache,
                retrierFactory: retrierFactory,
                hooks: hooks,
                configuration: configuration
            )
        }
        let plain = Sample.request("https://api.example.com/v1/articles/12345?lang=en&fields=title,body")
        let bearer = "Bearer " + String(repeating: "0123456789abcdef", count: 8)
        let misses = (0..<400).map { Sample.request("https://api.example.com/v1/articles/\($0)") }
        func asking(field: String, value: String) -> URLRequest {
            var changed = plain
            changed.setValue(value, forHTTPHeaderField: field)
            return changed
        }
        let missing = pipeline(cache: .inMemory(capacity: 64 << 20))
        let hit = pipeline(cache: .inMemory())
        let observedHit = pipeline([BusyHook()], cache: .inMemory())
        let longHit = pipeline(cache: .inMemory())
        let uniform = pipeline(cache: .inMemory())
        let urls = (0..<2_000).map { Sample.request("https://api.example.com/v1/all/\($0)") }
        line.run {
            for url in urls { _ = try? await uniform.send(url) }
        }
        let confirmed = Pipeline(
            transport: ImmediateTransport(confirms: true),
            cache: .inMemory(),
            retrierFactory: .never,
            configuration: configuration
        )
        let retried = Pipeline(
            transport: ImmediateTransport(failsFirst: true),
            retrierFactory: .backoff(),
            configuration: configuration
        )
        var tolerant = plain
        tolerant.cachePolicy = .returnCacheDataElseLoad
        func sends(_ name: String, pipeline: Pipeline, request: URLRequest = plain) -> Path {
            Path(name) { (_: Int) async throws -> Bool in try await pipeline.send(request).status == .ok }
        }
        return [
            sends("call-empty", pipeline: pipeline()),
            sends("call-one-hook", pipeline: pipeline([BusyHook()])),
            sends("call-one-synchronous-hook", pipeline: pipeline([SynchronousHook()])),
            sends("call-five-hooks", pipeline: pipeline((0..<5).map { _ in BusyHook() })),
            sends("call-five-idle-hooks", pipeline: pipeline((0..<5).map { _ in IdleHook() })),
            sends("call-retrier", pipeline: pipeline(retrierFactory: .backoff())),
            sends("call-retried", pipeline: retried),
            sends("hit", pipeline: hit),
            Path("hit-data") { (_: Int) async throws -> Bool in try await hit.data(for: plain).0.count == 1024 },
            sends("hit-below-a-hook", pipeline: observedHit),
            sends("hit-below-a-synchronous-hook", pipeline: pipeline([SynchronousHook()], cache: .inMemory())),
            sends("hit-edited", pipeline: pipeline([EditingHook()], cache: .inMemory())),
            sends("hit-authorized", pipeline: hit, request: asking(field: "Authorization", value: bearer)),
            sends("hit-cookies", pipeline: hit, request: asking(field: "Cookie", value: "session=0123456789abcdef")),
            sends("hit-directives", pipeline: hit, request: asking(field: "Cache-Control", value: "max-age=600")),
            Path("hit-uniform") { (index: Int) async throws -> Bool in
                try await uniform.send(urls[index * 1_999 % urls.count]).status == .ok
            },
            sends("hit-decided-in-full", pipeline: longHit, request: tolerant),
            // Each URL is called once unobserved and once counted. The second time it would be found, so every other request is
            // a new one.
            Path("miss-stored", turns: 200) { (index: Int) async throws -> Bool in
                var request = misses[index]
                request.cachePolicy = .reloadIgnoringLocalCacheData
                let response = try await missing.send(request)
                return try await response.body.collect().count == 1024
            },
            sends("hit-revalidated", pipeline: confirmed, request: asking(field: "Cache-Control", value: "no-cache")),
        ]
    }
}

/// Sample requests and responses.
enum Sample {
    static let requestFields: HeaderFields = [
        "Accept": "application/json", "Accept-Language": "en-GB,en;q=0.8", "Accept-Encoding": "gzip, deflate",
        "User-Agent": "Shop/4.2 (Linux)", "X-Request-ID": "7f3c9a52-1f9e-4f0f-9f6c-0a1b2c3d4e5f",
        "X-Client-Version": "4.2.0", "DNT": "1", "Referer": "https://example.com/list",
    ]

    static let responseFields: HeaderFields = [
        "Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Cache-Control": "public, max-age=3600",
        "ETag": "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"", "Content-Type": "application/json; charset=utf-8",
        "Content-Length": "1024", "Vary": "Accept-Encoding", "Server": "origin", "X-Frame-Options": "DENY",
    ]

    static let notModifiedFields: HeaderFields = [
        "Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Cache-Control": "public, max-age=3600",
        "ETag": "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"", "Vary": "Accept-Encoding",
    ]

    static func request(_ text: String) -> URLRequest {
        guard let url = URL(string: text) else { preconditionFailure("\(text) is not a URL") }
        var request = URLRequest(url: url)
        for line in requestFields { request.setValue(line.value, forHTTPHeaderField: line.name.rawName) }
        return request
    }
}

/// A clock that does not move, so that no path costs more because a second has passed.
private struct StillClock: HoldfastClock {
    var now: MonotonicInstant { MonotonicInstant(sinceOrigin: .zero) }
    var timestamp: Timestamp { Timestamp(millisecondsSinceEpoch: 1_700_000_001_000) }
    func sleep(until deadline: MonotonicInstant) async throws {}
}

private struct ImmediateTransport: Transport {
    /// Whether it answers 304 to a conditional request.
    var confirms = false
    /// Whether it answers 503 to the first attempt of each call.
    var failsFirst = false

    private let response = Response(
        status: .ok,
        fields: Sample.responseFields,
        body: ResponseBody(ByteChunk([UInt8](repeating: 7, count: 1024)))
    )
    private let notModified = Response(status: .notModified, fields: Sample.notModifiedFields)
    private let unavailable = Response(status: .serviceUnavailable)

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        if failsFirst, context.attempt == 1 { return unavailable }
        return confirms && request.value(forHTTPHeaderField: "If-None-Match") != nil ? notModified : response
    }
}

private struct BusyHook: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? { nil }
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {}
}

private struct SynchronousHook: SynchronousServiceHook {
    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? { nil }
    func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {}
}

/// Sets a credential, as hooks most often do.
private struct EditingHook: SynchronousServiceHook {
    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
        try request.setField("Authorization", to: "Bearer 0123456789abcdef")
        return nil
    }
}

private struct IdleHook: ServiceHook {}
