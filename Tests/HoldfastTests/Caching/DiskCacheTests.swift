// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A cache on disk", .timeLimit(.minutes(20)))
struct DiskCacheTests {
    static func withDirectory(_ body: (URL) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)/cache")
        defer { try? FileManager.default.removeItem(at: directory.deletingLastPathComponent()) }
        try await body(directory)
    }

    @Test("A directory that is not a file URL is refused, with words that say so")
    func notAFile() async throws {
        let url = try #require(URL(string: "https://u:secret@h.example/cache?token=secret"))
        let error = await #expect(throws: StoreError.self) { _ = try await HTTPCache.onDisk(at: url) }
        #expect(error?.code == .badConfiguration)
        #expect(error?.message.hasPrefix("https://h.example/cache?token=REDACTED is not a file URL.") == true)
    }

    @Test("Stored responses are there after a restart: fresh, stale, by variant and by user")
    func restart() async throws {
        let transport = ScriptedTransport { request in
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304) }
            let who = request.value(forHTTPHeaderField: "Authorization") ?? ""
            let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
            let fields: HeaderFields = [
                "Cache-Control": request.url?.path == "/tag" ? "no-cache" : "max-age=3600", "ETag": "\"v\"",
                "Vary": "Accept-Language",
            ]
            return .stream(200, fields, chunks: [who, language, String(repeating: "x", count: 300_000)])
        }
        try await Self.withDirectory { directory in
            let requests: [URLRequest] = [
                .get("http://h.example/a", ["Accept-Language": "de"]),
                .get("http://h.example/a", ["Accept-Language": "en"]),
                .get("http://h.example/a", ["Authorization": "bob"]), .get("http://h.example/tag"),
            ]
            var bodies: [String] = []
            for run in 0..<2 {
                let cache = try await HTTPCache.onDisk(at: directory)
                let pipeline = Pipeline(transport: transport, cache: cache)
                for (index, request) in requests.enumerated() {
                    let response = try await pipeline.send(request)
                    let body = String(decoding: try await response.body.collect(), as: UTF8.self)
                    if run == 0 {
                        bodies.append(body)
                    } else {
                        #expect(body == bodies[index])
                        #expect(response.source == (index == 3 ? .revalidated : .fresh))
                    }
                }
                await cache.close()
            }
            #expect(transport.sent.count == requests.count + 1)
        }
    }

    @Test(
        "A long stored body with damage in the middle fails its reader once, is counted, and is fetched again next time"
    )
    func damagedLongBody() async throws {
        try await Self.withDirectory { directory in
            let body = String(repeating: "x", count: 600_000)
            let transport = ScriptedTransport(
                [.stream(200, ["Cache-Control": "max-age=600"], chunks: [body])],
                repeatsLastStep: true
            )
            let cache = try await HTTPCache.onDisk(at: directory)
            let pipeline = Pipeline(transport: transport, cache: cache)
            _ = try await pipeline.data(for: .get())
            let bodies = directory.appending(path: "blobs")
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: bodies.path).first)
            let file = try FileHandle(forUpdating: bodies.appending(path: name))
            try file.seek(toOffset: 300_000)
            try file.write(contentsOf: Data([0]))
            try file.close()
            let response = try await pipeline.send(.get())
            #expect(response.source == .fresh)
            await #expect(throws: ServiceError.self) { try await response.body.collect() }
            #expect(cache.statistics.storeFailures == 1)
            #expect(try await pipeline.data(for: .get()).0.count == 600_000)
            #expect(transport.sent.count == 2)
            await cache.close()
        }
    }

    @Test("A directory in use gives a clear error that names the process")
    func locked() async throws {
        try await Self.withDirectory { directory in
            let cache = try await HTTPCache.onDisk(at: directory)
            await #expect {
                try await HTTPCache.onDisk(at: directory)
            } throws: { error in
                let error = error as? StoreError
                return error?.code == .locked
                    && error?.message.contains("\(ProcessInfo.processInfo.processIdentifier)") == true
            }
            await cache.close()
            try await HTTPCache.onDisk(at: directory).close()
        }
    }

    @Test("A closed cache is bypassed: requests continue without it")
    func closed() async throws {
        try await Self.withDirectory { directory in
            let cache = try await HTTPCache.onDisk(at: directory)
            let transport = ScriptedTransport(
                [.respond(200, ["Cache-Control": "max-age=60"], body: "x")],
                repeatsLastStep: true
            )
            let pipeline = Pipeline(transport: transport, cache: cache)
            await cache.close()
            for _ in 0..<2 { #expect(try await pipeline.data(for: .get()).0 == Data("x".utf8)) }
            #expect(transport.sent.count == 2)
        }
    }
}
