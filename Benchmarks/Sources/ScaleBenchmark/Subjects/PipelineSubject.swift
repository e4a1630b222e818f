// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Holdfast
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A pipeline with a memory cache, and an origin in this process.
struct PipelineSubject: Subject {
    let name = "holdfast"
    private let pipeline: Pipeline
    private let origin = OriginTransport(length: Entry.bodyLength)

    /// Fills the cache by requesting each resource once.
    init(entries: Int) async throws {
        // Enough for all: such an entry takes less than 2 KiB.
        let cache = HTTPCache.inMemory(capacity: entries * 2_048 + (64 << 20))
        pipeline = Pipeline(transport: origin, cache: cache)
        for number in 0..<entries {
            guard let request = Resource(number, length: Entry.bodyLength).request else { continue }
            _ = try await pipeline.send(request).body.collect()
        }
        await pipeline.drain()
    }

    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int {
        var right = 0
        for place in places {
            let (request, number) = (asking.requests[place], asking.numbers[place])
            let response = try await pipeline.send(request)
            guard response.source == .fresh else { continue }
            if Entry.isBody(try await response.body.collect(), of: number) { right += 1 }
        }
        return right
    }
}

/// A dictionary under one lock, from the URL's text to a prepared response: no freshness, no fields, no limit.
final class AnswerSubject: Subject {
    let name = "dictionary"
    private let responses: Mutex<[String: Response]>

    init(entries: Int) {
        var responses: [String: Response] = [:]
        for resource in (0..<entries).map({ Resource($0, length: Entry.bodyLength) }) {
            responses[resource.url] = resource.response(now: SystemClock().timestamp)
        }
        self.responses = Mutex(responses)
    }

    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int {
        var right = 0
        for place in places {
            let (request, number) = (asking.requests[place], asking.numbers[place])
            guard let url = request.url?.absoluteString,
                let bytes = responses.withLock({ $0[url] })?.body.bytesInMemory
            else { continue }
            if Entry.isBody(bytes, of: number) { right += 1 }
        }
        return right
    }
}
