// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Groups of an origin, and the whole origin", .timeLimit(.minutes(20)))
struct OriginSweepTests {
    private static func origin(
        answering: @escaping @Sendable (URLRequest) -> HeaderFields?
    ) -> ScriptedTransport {
        .counting { request in
            if let fields = answering(request) { return fields }
            let group = request.url?.lastPathComponent ?? ""
            return [
                "Cache-Control": "max-age=60", "ETag": "\"a\"", "Cache-Groups": "\"\(group.prefix(1))\", \"other\"",
            ]
        }
    }

    private static func invalidating(_ fields: HeaderFields) -> ScriptedTransport {
        origin { $0.httpMethod == "POST" || $0.url?.lastPathComponent == "logout" ? fields : nil }
    }

    @Test("RFC 9875 §3: an unsafe request invalidates the groups it names, of its origin, and nothing further")
    func groups() async throws {
        let bench = CacheBench(Self.invalidating(["Cache-Group-Invalidation": "\"x\""]))
        let urls = ["http://h.example/x1", "http://h.example/x2", "http://h.example/y1", "http://i.example/x1"]
        for url in urls { try await bench.load(.get(url)) }
        try await bench.load(.request("POST", "http://h.example/post"))
        var sources: [Bool] = []
        for url in urls { sources.append(try await bench.load(.get(url)).source == .fresh) }
        #expect(sources == [false, false, true, true])
    }

    @Test("RFC 9875 §3: a safe request and an error invalidate nothing", arguments: ["GET", "POST"])
    func ignored(method: String) async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/do"
                ? .respond(method == "GET" ? 200 : 500, ["Cache-Group-Invalidation": "\"x\""])
                : .respond(200, ["Cache-Control": "max-age=60", "Cache-Groups": "\"x\""], body: "one")
        }
        let bench = CacheBench(transport)
        try await bench.load(.get("http://h.example/x1"))
        try await bench.load(.request(method, "http://h.example/do"))
        #expect(try await bench.load(.get("http://h.example/x1")) == .fresh("one"))
    }

    @Test("A caller's tag with a group's name does not add its entry to the group, and a purge by tag still works")
    func callersTags() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                request.httpMethod == "POST"
                    ? .respond(200, ["Cache-Group-Invalidation": "\"x\""])
                    : .respond(200, ["Cache-Control": "max-age=60", "Cache-Groups": "\"z\""], body: "one")
            }
        )
        var options = CallOptions()
        options.tags = Set(["x", "group x"] + (0..<70).map { "tag \($0)" })
        try await bench.load(.get("http://h.example/a"), options)
        try await bench.load(.request("POST", "http://h.example/b"))
        #expect(try await bench.load(.get("http://h.example/a")) == .fresh("one"))
        #expect(try await bench.cache.remove(.tag("group x")) == 1)
    }

    @Test("A 304 that changes the groups changes their tags and keeps the caller's")
    func freshened() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                if request.httpMethod == "POST" {
                    return .respond(
                        200,
                        ["Cache-Group-Invalidation": request.url?.path == "/old" ? "\"x\"" : "\"new\""]
                    )
                }
                return request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(
                        200,
                        ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Cache-Groups": "\"x\""],
                        body: "one"
                    )
                    : .respond(304, ["ETag": "\"a\"", "Cache-Groups": "\"new\""])
            }
        )
        var options = CallOptions()
        options.tags = ["mine"]
        try await bench.load(.get("http://h.example/a"), options)
        try await bench.load(.get("http://h.example/a", ["Cache-Control": "no-cache"]))
        try await bench.load(.request("POST", "http://h.example/old"))
        #expect(try await bench.load(.get("http://h.example/a")) == .fresh("one"))
        try await bench.load(.request("POST", "http://h.example/new"))
        #expect(try await bench.load(.get("http://h.example/a")) == .network("one"))
        try await bench.load(.get("http://h.example/b"), options)
        #expect(try await bench.cache.remove(.tag("mine")) == 1)
    }

    @Test(
        "Both invalidate the principal's and the shared partition, and no other principal's",
        arguments: [true, false]
    )
    func partitions(byGroup: Bool) async throws {
        let bench = CacheBench(
            Self.invalidating(
                byGroup
                    ? ["Cache-Group-Invalidation": "\"x\""]
                    : ["Clear-Site-Data": "\"cookies\", \"cache\"", "Cache-Control": "max-age=60"]
            )
        )
        let users: [[String: String]] = [[:], ["Authorization": "a"], ["Authorization": "b"]]
        for user in users { try await bench.load(.get("https://h.example/x1", user)) }
        try await bench.load(.request("POST", "https://h.example/logout", ["Authorization": "a"]))
        var fresh: [Bool] = []
        for user in users { fresh.append(try await bench.load(.get("https://h.example/x1", user)).source == .fresh) }
        #expect(fresh == [false, false, true])
    }

    @Test(
        "Clear-Site-Data clears its own https origin, for any method, unless turned off",
        arguments: [
            ("https", "\"cache\"", true), ("https", "\"*\"", true), ("https", "\"storage\"", false),
            ("http", "\"cache\"", false),
        ],
        [true, false]
    )
    func clearing(_ site: (scheme: String, value: String, clears: Bool), honored: Bool) async throws {
        var options = CacheOptions()
        options.honorsClearSiteData = honored
        let bench = CacheBench(options: options, Self.invalidating(["Clear-Site-Data": site.value]))
        let own = "\(site.scheme)://h.example/x1"
        try await bench.load(.get(own))
        try await bench.load(.get("https://i.example/x1"))
        try await bench.load(.get("\(site.scheme)://h.example/logout"))
        #expect(try await bench.load(.get(own)).source == (site.clears && honored ? .network(attempts: 1) : .fresh))
        #expect(try await bench.load(.get("https://i.example/x1")).source == .fresh)
    }

    @Test("Groups survive a restart with a disk store")
    func disk() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-groups-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: path) }
        let transport = Self.invalidating(["Cache-Group-Invalidation": "\"x\""])
        let first = try await DiskStore.open(
            directory: path.path,
            capacity: 1 << 20,
            now: StoreInstant(milliseconds: 0)
        )
        let before = CacheBench(transport, store: first)
        for name in ["x1", "y1"] { try await before.load(.get("http://h.example/\(name)")) }
        await first.close()
        let second = try await DiskStore.open(
            directory: path.path,
            capacity: 1 << 20,
            now: StoreInstant(milliseconds: 0)
        )
        let bench = CacheBench(transport, store: second)
        #expect(try await bench.load(.get("http://h.example/x1")).source == .fresh)
        try await bench.load(.request("POST", "http://h.example/p"))
        #expect(try await bench.load(.get("http://h.example/x1")).source == .network(attempts: 1))
        #expect(try await bench.load(.get("http://h.example/y1")).source == .fresh)
        await second.close()
    }

    @Test("A part that completes another one brings its own groups, and the tags of its call")
    func completed() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                if request.httpMethod == "POST" { return .respond(200, ["Cache-Group-Invalidation": "\"new\""]) }
                let isRest = request.value(forHTTPHeaderField: "If-Range") != nil
                return .respond(
                    206,
                    [
                        "Cache-Control": "max-age=60", "ETag": "\"a\"",
                        "Content-Range": isRest ? "bytes 3-5/6" : "bytes 0-2/6",
                        "Cache-Groups": isRest ? "\"new\"" : "\"x\"",
                    ],
                    body: isRest ? "def" : "abc"
                )
            }
        )
        try await bench.load(.get("http://h.example/a", ["Range": "bytes=0-2"]))
        var options = CallOptions()
        options.tags = ["mine"]
        #expect(try await bench.load(.get("http://h.example/a"), options).body == "abcdef")
        #expect(try await bench.cache.pin(.tag("mine")) == PinReport(pinned: 1))
        try await bench.load(.request("POST", "http://h.example/b"))
        #expect(bench.cache.store.statistics.entryCount == 0)
    }
}
