// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("Entries in the inspector", .timeLimit(.minutes(20)))
    struct EntryQueryTests {
        private static func filled(_ count: Int) async throws -> InspectorBench {
            let bench = InspectorBench()
            for number in 0..<count {
                let tags: Set<String> = number % 2 == 0 ? ["even"] : []
                try await bench.load("http://origin.example/page/\(number)?key=s3cret", tags: tags)
            }
            return bench
        }

        @Test("Pages continue until every entry was shown once", arguments: [1, 2, 7, 25, 200])
        func pages(limit: Int) async throws {
            let bench = try await Self.filled(25)
            var seen: [String] = []
            var (cursor, rounds) = ("", 0)
            repeat {
                let page = try await bench.object("/api/entries?limit=\(limit)&cursor=\(cursor)")
                let entries = try #require(page["entries"] as? [[String: Any]])
                #expect(entries.count <= limit)
                #expect(page["total"] as? Int == 25)
                seen += entries.compactMap { $0["url"] as? String }
                cursor = page["next"] as? String ?? ""
                rounds += 1
            } while !cursor.isEmpty && rounds < 100
            #expect(seen.sorted() == (0..<25).map { "http://origin.example/page/\($0)?key=REDACTED" }.sorted())
        }

        @Test(
            "A search looks at URL, status and tags, ignores letter case, and does not look at credentials",
            arguments: [
                ("PAGE/1", 11), ("even", 13), ("200", 25), ("404", 0), ("s3cret", 0), ("page%2F24", 1), ("", 25),
                ("nothing", 0),
                ("origin.example", 25),
            ]
        )
        func search(text: String, count: Int) async throws {
            let bench = try await Self.filled(25)
            #expect(try await bench.entries("?search=\(text)&limit=200").count == count)
        }

        @Test("Any limit and cursor is accepted or refused, and never traps")
        func oddities() async throws {
            let bench = try await Self.filled(3)
            for limit in ["0", "-5", "9999999999"] {
                #expect((1...3).contains(try await bench.entries("?limit=\(limit)").count))
            }
            for query in [
                "limit=99999999999999999999", "limit=x", "limit=", "search=%zz", "search", "limit=1&limit=2", "find=a",
            ] {
                let response = await bench.desk.answer(.page(.get, "/api/entries?\(query)"))
                #expect(response.status == 400, "\(query)")
            }
            for cursor in ["x", "0", "zz", "0G", String(repeating: "00", count: 9_000)] {
                let response = await bench.desk.answer(.page(.get, "/api/entries?cursor=\(cursor)"))
                #expect(response.status == 400)
            }
            var generator = SeededGenerator(seed: 11)
            for _ in 0..<300 {
                let length = Int.random(in: 1...24, using: &generator)
                let digits = (0..<2 * length).map { _ in String(UInt8.random(in: 0...15, using: &generator), radix: 16)
                }
                let response = await bench.desk.answer(.page(.get, "/api/entries?cursor=\(digits.joined())"))
                #expect(response.status == 200, "seed 11: \(digits.joined())")
            }
        }

        @Test("An entry is listed with its freshness, its last decision and the same ID each time")
        func entry() async throws {
            let bench = try await Self.filled(1)
            try await bench.load("http://origin.example/page/0?key=s3cret")
            let first = try #require(try await bench.entries().first)
            #expect(first["freshnessLeft"] as? Int == 60)
            #expect(first["isFresh"] as? Bool == true)
            #expect((first["decision"] as? [String: Any])?["reason"] as? String == "fresh")
            #expect(first["bodyLength"] as? Int == 7)
            bench.clock.advance(by: .seconds(100))
            let later = try #require(try await bench.entries().first)
            #expect(later["freshnessLeft"] as? Int == -40)
            #expect(later["isFresh"] as? Bool == false)
            #expect(later["id"] as? String == first["id"] as? String)
        }

        @Test("Details show the stored head without credentials, the Vary key and the tags")
        func details() async throws {
            let bench = InspectorBench { _ in
                .respond(
                    200,
                    [
                        "Cache-Control": "max-age=60, public", "Vary": "Accept-Language, X-Api-Token",
                        "Set-Cookie": "id=geheim",
                        "X-Note": "<script>alert(1)</script>", "Location": "http://u:geheim@a.example/?t=geheim",
                    ],
                    body: "1234"
                )
            }
            try await bench.load(
                "http://origin.example/a",
                ["Accept-Language": "de", "X-Api-Token": "geheim"],
                tags: ["b", "a"]
            )
            let id = try #require(try await bench.entries().first?["id"] as? String)
            let response = await bench.desk.answer(.page(.get, "/api/entry?id=\(id)"))
            let text = String(decoding: try await response.body.collect(), as: UTF8.self)
            #expect(!text.contains("geheim"))
            let facts = try await bench.object("/api/entry?id=\(id)")
            #expect(facts["tags"] as? [String] == ["a", "b"])
            let fields = try #require(facts["fields"] as? [[String: Any]])
            func line(_ name: String) -> [String: Any]? { fields.first { $0["name"] as? String == name } }
            #expect(line("X-Note")?["value"] as? String == "<script>alert(1)</script>")
            #expect(line("Set-Cookie")?["value"] == nil)
            #expect(line("Set-Cookie")?["isHidden"] as? Bool == true)
            #expect(line("Location")?["value"] as? String == "http://a.example/?t=REDACTED")
            let nominated = try #require(facts["nominated"] as? [[String: Any]])
            #expect(nominated.map { $0["name"] as? String } == ["accept-language", "x-api-token"])
            #expect(nominated.map { $0["isHidden"] as? Bool } == [false, true])
            #expect(nominated.first?["value"] as? String == "de")
        }

        @Test("Details of unknown or removed entries are refused", arguments: ["", "0", "ffffffffffffffff", "%00"])
        func gone(id: String) async throws {
            #expect(await InspectorBench().desk.answer(.page(.get, "/api/entry?id=\(id)")).status == 404)
            let bench = try await Self.filled(1)
            let known = try #require(try await bench.entries().first?["id"] as? String)
            try await bench.cache.remove(.all)
            #expect(await bench.desk.answer(.page(.get, "/api/entry?id=\(known)")).status == 404)
        }

        @Test("The IDs of the last entries are remembered, up to the limit")
        func names() async throws {
            let bench = try await Self.filled(5)
            let book = EntryIndex(limit: 3)
            var infos: [CacheEntryInfo] = []
            for try await info in bench.cache.entries(now: bench.clock.timestamp) { infos.append(info) }
            let names = infos.map { book.name(of: $0) }
            #expect(Set(names).count == 5)
            #expect(names.map { book.entry($0) } == [nil, nil] + infos.suffix(3).map { $0 })
            #expect(infos.suffix(3).map { book.name(of: $0) } == names.suffix(3))
            #expect(book.count == 3)
        }
    }
#endif
