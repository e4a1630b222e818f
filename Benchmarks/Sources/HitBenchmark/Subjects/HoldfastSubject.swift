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
    private let pipeline: Pipeline
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
        pipeline = Pipeline(transport: origin, cache: cache, configuration: configuration)
        // The first pass fetches; the others move frequently requested resources to their final tier.
        for _ in 0..<4 {
            for request in (0..<count).compactMap({ Resource($0, length: length).request }) {
                for face in [HitCase.Face.send, .authorized] {
                    _ = try await pipeline.send(face.edited(request)).body.collect()
                }
            }
            await pipeline.drain()
        }
        filled = origin.sendCount
        guard filled == 2 * count else { throw WrongAnswer(subject: name) }
    }

    func takesPart(in hitCase: HitCase) -> Bool { name == "holdfast" || hitCase.face.isCommon }

    func ask(_ asking: Asking, _ places: Range<Int>, _ face: HitCase.Face) async throws -> Int {
        var right = 0
        if face == .data {
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
