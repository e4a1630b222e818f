// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast replay of a HAR file", .timeLimit(.minutes(20)))
    struct HARReplayTests {
        static func entry(
            _ second: Int,
            _ path: String,
            _ response: String = "",
            method: String = "GET",
            request: String = "",
            status: Int = 200
        ) -> String {
            let minute = second / 60 < 10 ? "0\(second / 60)" : "\(second / 60)"
            let rest = second % 60 < 10 ? "0\(second % 60)" : "\(second % 60)"
            func fields(_ text: String) -> String {
                text.split(separator: "\n").map { line in
                    let colon = line.firstIndex(of: ":") ?? line.endIndex
                    let value = line[colon...].dropFirst().drop { $0 == " " }
                    return #"{"name": "\#(line[..<colon])", "value": "\#(value)"}"#
                }.joined(separator: ",")
            }
            return """
                {"startedDateTime": "2026-01-31T12:\(minute):\(rest).000Z", "time": 0,
                 "request": {"method": "\(method)", "url": "https://www.example\(path)", "httpVersion": "h2",
                             "headers": [{"name": ":path", "value": "\(path)"}\(request.isEmpty ? "" : ",")\(fields(request))]},
                 "response": {"status": \(status), "headers": [\(fields(response))], "bodySize": -1,
                              "content": {"size": 100, "mimeType": "text/html", "text": "…"}},
                 "cache": {}, "timings": {"send": 0, "wait": 0, "receive": 0}}
                """
        }

        static func har(_ entries: [String]) -> String {
            #"{"log": {"version": "1.2", "creator": {"name": "by hand"}, "entries": ["# + entries.joined(separator: ",")
                + "]}}"
        }

        /// Nine requests that are looked up, of which a cache without a bound answers two, three where reloads are ignored.
        static let recorded = har([
            entry(0, "/a", "Cache-Control: max-age=60"), entry(30, "/a", "Cache-Control: max-age=60"),
            entry(61, "/a", "Cache-Control: max-age=60"),
            entry(62, "/n", "Cache-Control: no-store"),
            entry(63, "/v", "Cache-Control: max-age=600\nVary: Accept-Language", request: "Accept-Language: en"),
            entry(64, "/v", "Cache-Control: max-age=600\nVary: Accept-Language", request: "Accept-Language: de"),
            entry(65, "/v", "Cache-Control: max-age=600\nVary: Accept-Language", request: "Accept-Language: en"),
            entry(70, "/a", method: "POST"), entry(80, "/a", "Cache-Control: max-age=60"),
            entry(90, "/a", "Cache-Control: max-age=60", request: "Cache-Control: no-cache"),
        ])

        private static func near(_ value: Double?, _ expected: Double) -> Bool {
            value.map { abs($0 - expected) < 0.000_001 } ?? false
        }

        @Test("Rules by route apply: a fixed lifetime, key fields, ignored query parameters, content types")
        func rules() async throws {
            let folder = try TestFolder()
            let (life, none) = ("Cache-Control: max-age=60", "Cache-Control: no-store")
            let file = try folder.file(
                "a.har",
                Self.har([
                    Self.entry(0, "/fixed", none), Self.entry(1, "/fixed", none),
                    Self.entry(2, "/tenant", life, request: "X-Tenant: a"),
                    Self.entry(3, "/tenant", life, request: "X-Tenant: b"),
                    Self.entry(4, "/q?utm_a=1", life), Self.entry(5, "/q?utm_a=2", life),
                    Self.entry(6, "/i", life + "\nContent-Type: image/png"),
                    Self.entry(7, "/i", life + "\nContent-Type: image/png"),
                ])
            )
            let rules = try folder.file(
                "rules.json",
                """
                {"rules": [
                  {"paths": ["/fixed"], "fixedLifetime": "60s"}, {"paths": ["/tenant"], "keyFields": ["X-Tenant"]},
                  {"paths": ["/q"], "query": {"ignoredNames": ["utm_*"]}},
                  {"contentTypes": ["image/*"], "neverStore": true}
                ]}
                """
            )
            let plain = try await ReplayOutput([file, "--sizes", "1kB", "--policies", "lru"])
            #expect(Self.near(plain.value("object-hit-ratio", "@unbounded", "unbounded"), 2.0 / 8))
            let ruled = try await ReplayOutput([file, "--sizes", "1kB", "--policies", "lru", "--rules", rules])
            #expect(Self.near(ruled.value("object-hit-ratio", "@unbounded", "unbounded"), 2.0 / 8))
            #expect(ruled.count("objects") == 4)
        }

        @Test("Storability, freshness, Vary and invalidation are those of RFC 9111 §3, §4.2, §4.1, §4.4")
        func evaluated() async throws {
            let folder = try TestFolder()
            let file = try folder.file("page.har", Self.recorded)
            let found = try await ReplayOutput([file, "--sizes", "1MB", "--policies", "lru,density"])
            #expect(found.count("requests") == 10)
            #expect(found.count("looked-up") == 9)
            #expect(Self.near(found.value("object-hit-ratio", "@unbounded", "unbounded"), 2.0 / 9))
            #expect(Self.near(found.value("object-hit-ratio", "@1MB", "lru"), 2.0 / 9))
            #expect(Self.near(found.value("object-hit-ratio", "@1MB", "density"), 2.0 / 9))
            #expect(Self.near(found.value("expired-ratio", "@1MB", "lru"), 1.0 / 9))
            #expect(found.value("requests", "@unbounded", "fresh (RFC 9111 §4.2)") == 2)
            #expect(found.value("requests", "@unbounded", "no-variant (RFC 9111 §4.1)") == 1)
            #expect(found.value("requests", "@not-kept", "response-no-store (RFC 9111 §5.2.2.5)") == 1)
            #expect(found.value("requests", "@not-kept", "must-validate (RFC 9111 §5.2.2.4), by the request") == 1)
        }

        @Test("With --ignore-reloads a reload counts as an ordinary request")
        func ignoresReloads() async throws {
            let folder = try TestFolder()
            let file = try folder.file("page.har", Self.recorded)
            let found = try await ReplayOutput([file, "--sizes", "1MB", "--policies", "lru", "--ignore-reloads"])
            #expect(Self.near(found.value("object-hit-ratio", "@1MB", "lru"), 3.0 / 9))
        }

        @Test("A cache too small for two objects fetches again, and keeps what it gets")
        func small() async throws {
            let folder = try TestFolder()
            let long = "Cache-Control: max-age=600"
            let har = Self.har([
                Self.entry(0, "/a", long), Self.entry(1, "/b", long), Self.entry(2, "/a", long),
                Self.entry(3, "/a", long),
            ])
            let file = try folder.file("page.har", har)
            let found = try await ReplayOutput([file, "--sizes", "150,200", "--policies", "lru"])
            #expect(found.value("object-hit-ratio", "@150", "lru") == 0.25)
            #expect(found.value("object-hit-ratio", "@200", "lru") == 0.5)
        }

        @Test(
            "no-cache is never a hit, private only in a private cache, a 304 revalidates (RFC 9111 §5.2.2.4, §5.2.2.7, §4.3.4)"
        )
        func directives() async throws {
            let folder = try TestFolder()
            let har = Self.har([
                Self.entry(0, "/n", "Cache-Control: no-cache\nETag: \\\"1\\\""),
                Self.entry(1, "/n", "Cache-Control: no-cache\nETag: \\\"1\\\""),
                Self.entry(2, "/p", "Cache-Control: private, max-age=60"),
                Self.entry(3, "/p", "Cache-Control: private, max-age=60"),
                Self.entry(4, "/r", "Cache-Control: max-age=1\nETag: \\\"2\\\""),
                Self.entry(6, "/r", "Cache-Control: max-age=60\nETag: \\\"2\\\"", status: 304),
                Self.entry(9, "/r", "Cache-Control: max-age=60\nETag: \\\"2\\\""),
            ])
            let file = try folder.file("page.har", har)
            let own = try await ReplayOutput([file, "--sizes", "1MB", "--policies", "lru"])
            #expect(Self.near(own.value("object-hit-ratio", "@1MB", "lru"), 2.0 / 7))
            #expect(Self.near(own.value("expired-ratio", "@1MB", "lru"), 2.0 / 7))
            let shared = try await ReplayOutput([file, "--sizes", "1MB", "--policies", "lru", "--mode", "shared"])
            #expect(Self.near(shared.value("object-hit-ratio", "@1MB", "lru"), 1.0 / 7))
            #expect(shared.value("requests", "@not-kept", "private (RFC 9111 §5.2.2.7)") == 2)
        }

        @Test("A file that was cut off is refused with the place where it ends; JSON that is wrong inside is not")
        func cutOff() async throws {
            let folder = try TestFolder()
            func failure(_ har: String) async throws -> String {
                let file = try folder.file("page.har", har)
                let error = await #expect(throws: (any Error).self) { try await ReplayOutput([file]) }
                return error.map { "\($0)" } ?? ""
            }
            let whole = Self.har([Self.entry(0, "/a")])
            for cut in [String(whole.dropLast(2)), String(whole.prefix(30))] {
                let words = try await failure(cut)
                #expect(words.contains("ends unexpectedly at byte \(cut.utf8.count)"), "\(words)")
            }
            let words = try await failure(whole.replacing("[", with: "[,"))
            #expect(words.contains("not a HAR file") && !words.contains("ends unexpectedly"), "\(words)")
        }

        @Test("A broken entry is counted and named, and the others are replayed")
        func broken() async throws {
            let folder = try TestFolder()
            let good = Self.entry(0, "/a", "Cache-Control: max-age=60")
            let har = Self.har([
                good, "{}", #"{"startedDateTime": 5}"#, "null", good.replacing("2026-01-31T12", with: "yesterday"),
                Self.entry(1, "/blocked", status: 0), good.replacing("https:", with: "data:"), good,
            ])
            let found = try await ReplayOutput([
                try folder.file("page.har", har), "--sizes", "1MB", "--policies", "lru",
            ])
            #expect(found.count("malformed") == 4)
            #expect(found.malformed.first?.contains("entry 2: no startedDateTime") == true, "\(found.malformed)")
            #expect(found.count("requests") == 4)
            #expect(found.count("looked-up") == 2)
            #expect(found.value("object-hit-ratio", "@1MB", "lru") == 0.5)
            #expect(found.value("requests", "@not-looked-up", "no answer") == 1)
        }

        @Test("A reload renews the copy for the requests after it")
        func reloadRenews() async throws {
            let folder = try TestFolder()
            let life = "Cache-Control: max-age=60"
            let file = try folder.file(
                "page.har",
                Self.har([
                    Self.entry(0, "/a", life), Self.entry(50, "/a", life, request: "Cache-Control: no-cache"),
                    Self.entry(80, "/a", life), Self.entry(111, "/a", life),
                ])
            )
            let found = try await ReplayOutput([file, "--sizes", "1kB", "--policies", "lru"])
            #expect(found.value("requests", "@unbounded", "fresh (RFC 9111 §4.2)") == 1)
            #expect(Self.near(found.value("object-hit-ratio", "@unbounded", "unbounded"), 1.0 / 4))
            #expect(Self.near(found.value("expired-ratio", "@1kB", "lru"), 1.0 / 4))
        }
    }
#endif
