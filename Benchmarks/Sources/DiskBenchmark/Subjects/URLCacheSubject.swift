// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Foundation's URLCache with a directory and no memory capacity.
final class URLCacheSubject: Subject {
    private let workload: Workload
    private let cache: URLCache

    init(_ setting: SubjectKind.Setting) throws {
        workload = setting.workload
        // Responses above a twentieth of the capacity are refused, so it must be large.
        let capacity = max(1 << 30, 64 * setting.workload.valueLength)
        #if canImport(FoundationNetworking)
            cache = URLCache(memoryCapacity: 0, diskCapacity: capacity, diskPath: setting.directory)
        #else
            let directory = URL(fileURLWithPath: setting.directory)
            cache = URLCache(memoryCapacity: 0, diskCapacity: capacity, directory: directory)
        #endif
    }

    func run(_ steps: ArraySlice<Step>) throws {
        for step in steps {
            try step.isPut ? put(step.entry) : get(step.entry)
        }
    }

    private func request(_ entry: Int) throws -> URLRequest {
        // Only the path distinguishes entries, because on Linux the key is host and path.
        guard let url = URL(string: "https://bench.example/assets/\(entry)/0123456789abcdef0123456789") else {
            throw WrongAnswer(subject: "urlcache", entry: entry)
        }
        return URLRequest(url: url)
    }

    private func put(_ entry: Int) throws {
        let request = try request(entry)
        let fields = ["Cache-Control": "max-age=86400", "Content-Type": "application/octet-stream"]
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
        else { throw WrongAnswer(subject: "urlcache", entry: entry) }
        let data = Data(workload.value(entry))
        cache.storeCachedResponse(CachedURLResponse(response: response, data: data), for: request)
    }

    private func get(_ entry: Int) throws {
        guard let stored = cache.cachedResponse(for: try request(entry)),
            workload.holdsValue([UInt8](stored.data), entry)
        else { throw WrongAnswer(subject: "urlcache", entry: entry) }
    }

    func close() {
        cache.removeAllCachedResponses()
    }
}
