// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Holdfast
    import HoldfastCommand
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast get: the cache", .timeLimit(.minutes(20)))
    struct GetCachingTests {
        private static let fresh = [("Cache-Control", "max-age=600"), ("ETag", "\"v1\"")]

        @Test("The second run is answered from the disk, and -v names the clause")
        func hit() async throws {
            let bed = try GetBed { _ in LoopbackReply(fields: Self.fresh, body: "hello") }
            let first = try await bed.run(["/a", "-v"])
            #expect(first.status == 0 && first.output == "hello")
            #expect(first.error.contains("> GET \(bed.server.url("/a"))"))
            #expect(first.error.contains("< HTTP 200") && first.error.contains("attempt 1: status 200"))
            #expect(first.error.contains("* cache: miss: not-stored (RFC 9111 §4); storing"))
            let second = try await bed.run(["/a", "-v"])
            #expect(second.status == 0 && second.output == "hello")
            #expect(second.error.contains("* cache: hit: fresh (RFC 9111 §4.2), age"))
            #expect(second.error.contains("* Cache-Status: holdfast;hit"))
            #expect(second.error.contains("nothing sent") && !second.error.contains("> GET"))
            #expect(bed.server.requests.count == 1)
        }

        @Test("--reload and --no-cache ask again, --no-store keeps nothing, --max-stale accepts stale responses")
        func asked() async throws {
            let bed = try GetBed { request in
                LoopbackReply(
                    fields: request.path == "/old" ? [("Cache-Control", "max-age=1"), ("Age", "100")] : Self.fresh,
                    body: "x"
                )
            }
            for words in [["/a"], ["/a", "--reload"], ["/a", "--no-cache"], ["/a"]] { _ = try await bed.run(words) }
            #expect(bed.server.requests.count == 3)
            for words in [["/b", "--no-store"], ["/b"]] { _ = try await bed.run(words) }
            #expect(bed.server.requests.count == 5)
            for words in [["/old"], ["/old"], ["/old", "--max-stale", "1h"]] { _ = try await bed.run(words) }
            #expect(bed.server.requests.count == 7)
        }

        @Test("--only-if-cached answers 504 without contacting the server (RFC 9111 §5.2.1.7)")
        func onlyIfCached() async throws {
            let bed = try GetBed { _ in LoopbackReply(fields: Self.fresh, body: "hello") }
            let none = try await bed.run(["/a", "--only-if-cached", "-v"])
            #expect(none.status == GetStatus.http)
            #expect(none.error.contains("HTTP 504") && none.error.contains("unsatisfiable"))
            #expect(bed.server.requests.isEmpty)
            _ = try await bed.run(["/a"])
            let some = try await bed.run(["/a", "--only-if-cached"])
            #expect(some.status == 0 && some.output == "hello" && bed.server.requests.count == 1)
        }

        @Test("--rules: a lifetime by path, and an invalid file is refused with the position of the error")
        func rules() async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "hello") }
            let good = bed.folder.url.appendingPathComponent("good.json")
            try Data(#"{"rules": [{"paths": ["/kept/*"], "lifetime": "5m"}]}"#.utf8).write(to: good)
            for path in ["/kept/a", "/kept/a", "/other", "/other"] {
                _ = try await bed.run([path, "--rules=\(good.path)"])
            }
            #expect(bed.server.requests.map(\.path) == ["/kept/a", "/other", "/other"])
            let wrong = bed.folder.url.appendingPathComponent("wrong.json")
            try Data("{\n\"rule\": []}".utf8).write(to: wrong)
            let failure = await #expect(throws: CommandFailure.self) {
                try await bed.run(["/kept/a", "--rules=\(wrong.path)"])
            }
            #expect(failure?.description.contains("line 2") == true)
        }

        @Test("A revalidation that hangs in the background keeps the command for five seconds, or until its deadline")
        func hangingRevalidation() async throws {
            let fields = [("Cache-Control", "max-age=1, stale-while-revalidate=600")]
            for (number, words) in [["/a"], ["/a", "--deadline", "2s"]].enumerated() {
                let clock = ManualClock()
                let served = CountWatch()
                let bed = try GetBed { _ in
                    defer { served.increment() }
                    return served.count == 0 ? LoopbackReply(fields: fields, body: "hello") : .never
                }
                _ = try await bed.run(["/a"], clock: clock)
                clock.advance(by: .seconds(10))
                let limit = Duration.seconds(number == 0 ? 5 : 2)
                func ends() -> Int { clock.waits.count { $0 == limit } }
                let before = ends()
                let run = Task { try await bed.run(words, clock: clock) }
                while bed.server.requests.count < 2 || ends() == before { await Task.yield() }
                clock.advance(by: limit)
                let outcome = try await run.value
                #expect(outcome.status == 0 && outcome.output == "hello")
            }
        }

        @Test("If another process holds the cache, one line says so, and the call is made without it")
        func locked() async throws {
            let bed = try GetBed { _ in LoopbackReply(fields: Self.fresh, body: "hello") }
            let holder = try await HTTPCache.onDisk(at: bed.folder.url.appendingPathComponent("cache"))
            let outcome = try await bed.run(["/a"])
            #expect(outcome.status == 0 && outcome.output == "hello")
            #expect(outcome.error.contains("continuing without the disk cache: This process ("))
            #expect(outcome.error.split(separator: "\n").count == 1)
            await holder.close()
            let later = try await bed.run(["/a"])
            #expect(later.error.isEmpty && bed.server.requests.count == 2)
        }

        @Test("--cache-dir sets the folder")
        func directory() async throws {
            let bed = try GetBed { _ in LoopbackReply(fields: Self.fresh, body: "hello") }
            let place = bed.folder.path("elsewhere")
            // A path of this machine and no target on the server.
            _ = try await bed.run(["/a", "--cache-dir=\(place)"])
            #expect(FileManager.default.fileExists(atPath: place))
            #expect(!FileManager.default.fileExists(atPath: bed.folder.path("cache")))
        }

        @Test(
            "The default folder is the platform's own",
            arguments: [
                (["XDG_CACHE_HOME": "/c", "HOME": "/h"], "/c/holdfast"),
                (["XDG_CACHE_HOME": "relative", "HOME": "/h"], nil),
                (["HOME": "/h"], nil),
            ] as [([String: String], String?)]
        )
        func usual(_ environment: [String: String], _ path: String?) {
            #if canImport(Darwin)
                let own = "/h/Library/Caches/holdfast"
            #else
                let own = "/h/.cache/holdfast"
            #endif
            #expect(GetEnvironment.userCacheDirectory(environment).path == path ?? own)
        }
    }
#endif
