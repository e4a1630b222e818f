// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Harness
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A pipeline with a cache, and an origin in this process.
struct HoldfastSubject: Subject {
    let name: String
    private let pipelines: [HitCase.Kind: Pipeline]
    private let cache: HTTPCache
    private let origin: OriginTransport
    private let filled: Int

    /// Fills the cache by requesting the first `count` resources.
    ///
    /// - Parameter line: where background work runs; nil: where every task runs.
    init(_ name: String, _ cache: HTTPCache, count: Int, length: Int, line: JobLine?) async throws {
        self.name = name
        self.cache = cache
        origin = OriginTransport(length: length)
        var configuration = PipelineConfiguration()
        configuration.executor = line
        let plain = Pipeline(transport: origin, cache: cache, configuration: configuration)
        var limited = configuration
        limited.callTimeout = .seconds(30)
        pipelines = [
            .plain: plain,
            .hooked: Pipeline(transport: origin, cache: cache, hooks: [LookingHook()], configuration: configuration),
            .edited: Pipeline(transport: origin, cache: cache, hooks: [EditingHook()], configuration: configuration),
            .usual: Pipeline(
                transport: origin,
                cache: cache,
                retrierFactory: .default,
                hooks: [LookingHook()],
                configuration: limited
            ),
        ]
        // The first pass fetches; the others move frequently requested resources to their final tier.
        let isFew = count < HitCase.Kind.uniform50k.entries ?? 0
        for _ in 0..<(isFew ? 4 : 1) {
            for request in (0..<count).compactMap({ Resource($0, length: length).request }) {
                for kind in isFew ? [HitCase.Kind.plain, .authorized] : [.plain] {
                    _ = try await plain.send(kind.edited(request)).body.collect()
                }
            }
            await plain.drain()
        }
        filled = origin.sendCount
        guard filled == (isFew ? 2 : 1) * count else { throw WrongAnswer(subject: name) }
    }

    func takesPart(in hitCase: HitCase) -> Bool { name == "holdfast" || hitCase.kind == .plain }

    func ask(_ asking: Asking, _ places: Range<Int>, _ hitCase: HitCase) async throws -> Int {
        guard let pipeline = pipelines[hitCase.kind] ?? pipelines[.plain] else { return 0 }
        var right = 0
        if hitCase.asksData {
            for place in places {
                let number = asking.number(place)
                let (data, head) = try await pipeline.data(for: asking.requests[number])
                if head is HTTPURLResponse, asking.resources[number].holds(data) { right += 1 }
            }
        } else {
            for place in places {
                let number = asking.number(place)
                let response = try await pipeline.send(asking.requests[number])
                guard response.source == .fresh else { continue }
                if asking.resources[number].holds(try await response.body.collect()) { right += 1 }
            }
        }
        return right
    }

    func close() async -> String? {
        await cache.close()
        let sent = origin.sendCount - filled
        return sent == 0 ? nil : "\(name) sent \(sent) requests to the origin instead of using the cache."
    }
}

/// Looks at each request and response, and waits for nothing.
private struct LookingHook: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? { nil }
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {}
}

/// Sets the credential of the authorized requests.
private struct EditingHook: SynchronousServiceHook {
    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
        try request.setField("Authorization", to: HitCase.Kind.credential)
        return nil
    }
}
