// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Foundation's URLCache with manually stored responses, because URLSession on Linux stores nothing in it.
struct URLCacheSubject: Subject {
    let name = "urlcache"
    let isSlow: Bool
    private let cache: URLCache
    private let count: Int

    /// Creates a URLCache that is only in memory or only on disk.
    ///
    /// - Parameters:
    ///   - directory: nil: in memory.
    ///   - count: The number of resources that it holds.
    init(directory: String?, count: Int, length: Int) throws {
        // Responses above a twentieth of the capacity are refused, so it must be large.
        let capacity = max(1 << 28, 64 * length)
        let (memory, disk) = directory == nil ? (capacity, 0) : (0, capacity)
        #if canImport(FoundationNetworking)
            cache = URLCache(memoryCapacity: memory, diskCapacity: disk, diskPath: directory)
        #else
            let place = directory.map { URL(fileURLWithPath: $0) }
            cache = URLCache(memoryCapacity: memory, diskCapacity: disk, directory: place)
        #endif
        isSlow = directory != nil
        self.count = count
        for resource in (0..<count).map({ Resource($0, length: length) }) {
            guard let request = resource.request,
                let head = resource.response(now: SystemClock().timestamp).makeHTTPURLResponse()
            else { throw WrongAnswer(subject: name) }
            cache.storeCachedResponse(CachedURLResponse(response: head, data: Data(resource.body)), for: request)
        }
    }

    func takesPart(in hitCase: HitCase) -> Bool { hitCase.kind != .fullDecision }

    func ask(_ asking: Asking, _ places: Range<Int>, _ hitCase: HitCase) async throws -> Int {
        var right = 0
        for place in places {
            let number = asking.number(place, of: count)
            guard let found = cache.cachedResponse(for: asking.requests[number]) else { continue }
            if found.response is HTTPURLResponse, asking.resources[number].holds(found.data) { right += 1 }
        }
        return right
    }

    func close() async -> String? {
        cache.removeAllCachedResponses()
        return nil
    }
}
