// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTesting
    import Testing

    /// The admin listener: who may ask it, what it tells, and what it purges.
    @Suite("The admin listener", .timeLimit(.minutes(20)))
    struct AdminTests {
        private static let token = "0123456789abcdef0123"

        private func origin() throws -> LoopbackServer {
            try LoopbackServer.start { request in
                LoopbackReply(
                    fields: [
                        ("Cache-Control", "max-age=600"), ("ETag", "\"v\""),
                        ("Surrogate-Key", request.target.hasPrefix("/news") ? "news front" : "other"),
                        ("Cache-Tag", "all,\(request.target.count)"),
                    ],
                    body: "body"
                )
            }
        }

        private struct Bench {
            let proxy: ToolProcess
            let port: Int
            let admin: Int

            init(_ origin: LoopbackServer, _ options: [String] = []) async throws {
                proxy = try ToolProcess(
                    [
                        "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)", "--admin",
                        "127.0.0.1:0", "--retry", "none",
                    ] + options
                )
                port = try await proxy.port()
                let line = proxy.errorText.split(separator: "\n").first { $0.hasPrefix("admin on http://127.0.0.1:") }
                admin = try #require(line?.split(separator: ":").last.flatMap { Int($0) })
            }

            func ask(_ method: String, _ target: String, _ fields: [String] = []) async throws -> String {
                let own = fields.contains { $0.hasPrefix("Host:") } ? [] : ["Host: 127.0.0.1:\(admin)"]
                return try await RawExchange.ask(port: admin, RawExchange.request(method, target, own + fields))
            }
        }

        @Test("Health, and request figures in the Prometheus format")
        func figures() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            for target in ["/a", "/a", "/a", "/b"] { _ = try await RawExchange.get(target, port: bench.port) }
            let refused = try await RawExchange.ask(port: bench.port, "GET / HTTP/9.9\r\n\r\n")
            let refusal = try #require(refused.firstRange(of: "\r\n\r\n").map { refused[$0.upperBound...] })
            #expect(try await bench.ask("GET", "/healthz").hasSuffix("\r\n\r\nok\n"))
            #expect(try await bench.ask("GET", "/readyz").hasPrefix("HTTP/1.1 200 "))
            #expect(try await bench.ask("HEAD", "/readyz").hasPrefix("HTTP/1.1 200 "))
            #expect(try await bench.ask("PUT", "/readyz").hasPrefix("HTTP/1.1 4"))
            let text = try await bench.ask("GET", "/metrics")
            for line in [
                "holdfast_responses_total{code=\"200\"} 4", "holdfast_responses_total{code=\"505\"} 1",
                "holdfast_response_bytes_total \(16 + refusal.utf8.count)",
                "holdfast_cache_requests_total{result=\"hit\"} 2", "holdfast_cache_requests_total{result=\"miss\"} 2",
                "holdfast_cache_stored_total 2", "holdfast_store_entries 2", "holdfast_origin_attempts_total 2",
                "holdfast_response_seconds_count{source=\"cache\"} 2",
                "holdfast_response_seconds_bucket{source=\"origin\",le=\"+Inf\"} 2",
                "holdfast_failures_total{kind=\"request\"} 1", "holdfast_client_connections_total 5",
                "holdfast_origin_up{origin=\"http://127.0.0.1:\(origin.port)\"} 1",
            ] { #expect(text.contains("\n\(line)\n"), "\(line) is not in \(text)") }
            #expect(try await bench.ask("GET", "/").contains("<!doctype html>"))
            #expect(try await bench.ask("GET", "/api/summary").hasPrefix("HTTP/1.1 200 "))
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "A purge removes what it names and nothing else",
            arguments: [
                ("POST", "/purge?url=/a", ["/a"]), ("POST", "/purge?prefix=/news/1", ["/news/1", "/news/12"]),
                ("POST", "/purge?tag=news", ["/news/1", "/news/12"]), ("POST", "/purge?tag=2", ["/a", "/b"]),
                ("POST", "/purge?all=1", ["/a", "/b", "/news/1", "/news/12", "/healthz"]),
                ("POST", "/purge?url=/a&tag=front", ["/a", "/news/1", "/news/12"]), ("PURGE", "/b", ["/b"]),
                ("PURGE", "/nothing", []), ("PURGE", "/healthz", ["/healthz"]),
            ]
        )
        func purging(_ method: String, _ target: String, _ gone: [String]) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            let all = ["/a", "/b", "/news/1", "/news/12", "/healthz"]
            for target in all { _ = try await RawExchange.get(target, port: bench.port) }
            let answer = try await bench.ask(method, target)
            #expect(answer.hasSuffix("{\"purged\":\(gone.count),\"soft\":false}\n"), "\(answer)")
            for target in all { _ = try await RawExchange.get(target, port: bench.port) }
            #expect(origin.requests.dropFirst(all.count).map(\.target) == gone)
            #expect(try await bench.proxy.end() == 0)
        }

        @Test("After a soft purge the origin is asked with the validator")
        func soft() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            for order in [("POST", "/purge?url=/a&soft=1", []), ("PURGE", "/a", ["Soft-Purge: 1"])] {
                _ = try await RawExchange.get("/a", port: bench.port)
                let answer = try await bench.ask(order.0, order.1, order.2)
                #expect(answer.hasSuffix("{\"purged\":1,\"soft\":true}\n"), "\(answer)")
                _ = try await RawExchange.get("/a", port: bench.port)
                #expect(origin.requests.last?.values(of: "If-None-Match") == ["\"v\""])
            }
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "Foreign purge requests are refused, and no PURGE reaches the origin",
            arguments: [
                ("POST", "/purge?all=1", ["Host: evil.example"]), ("PURGE", "/a", ["Via: 1.1 x"]),
                ("POST", "/purge?all=1", ["Origin: http://evil.example"]),
                ("POST", "/purge?all=1", ["Sec-Fetch-Site: cross-site"]),
                ("POST", "/purge", []), ("POST", "/purge?everything=1", []), ("POST", "/purge?url=ftp://x/", []),
                ("GET", "/purge?all=1", []),
            ]
        )
        func refusals(_ method: String, _ target: String, _ fields: [String]) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            _ = try await RawExchange.get("/a", port: bench.port)
            #expect(try await bench.ask(method, target, fields).hasPrefix("HTTP/1.1 4"))
            let front = try await RawExchange.ask(port: bench.port, RawExchange.request("PURGE", "/a"))
            #expect(front.hasPrefix("HTTP/1.1 403 "), "\(front)")
            _ = try await RawExchange.get("/a", port: bench.port)
            #expect(origin.requests.map(\.method) == ["GET"])
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "A purge whose query or fields cannot be understood is refused with what is understood, and purges nothing",
            arguments: [
                ("POST", "/purge?url=/a&soft=banana", [], "as 1 to require confirmation or as 0 to remove"),
                ("POST", "/purge?url=/a&soft=", [], "as 1 to"),
                ("POST", "/purge?url=/a&soft=1&soft=0", [], "given once"),
                ("POST", "/purge?url=/a&soft", [], "'soft' is not understood. Write name=value"),
                ("POST", "/purge?url=/a&soft=%zz", [], "'soft=%zz' is not understood"),
                ("POST", "/purge?url=/a&softly=1", [], "Specify what to purge"),
                ("POST", "/purge?all=0", [], "Specify what to purge"),
                ("POST", "/purge?all=1&url=/a", [], "leave it or the others out. Nothing was purged"),
                ("POST", "/purge?tag=x&all=1", [], "leave it or the others out. Nothing was purged"),
                ("POST", "/purge?tag=", [], "Specify what to purge"),
                (
                    "POST", "/purge?url=/a" + String(repeating: "&tag=x", count: 100), [], "more than 100 arguments"
                ),
                ("PURGE", "/a", ["Soft-Purge: yes"], "Soft-Purge must be given once"),
                ("PURGE", "/a", ["Soft-Purge: 1", "Fastly-Soft-Purge: 0"], "Soft-Purge must be given once"),
                ("POST", "/purge/matching?soft=1", ["Content-Type: application/json"], "Remove the query."),
                ("GET", "/api/entries?limit=many", [], "limit= must be a whole number"),
                ("GET", "/api/entries?limits=5", [], "The query may have search=, cursor=, limit=, each once."),
                ("GET", "/api/calls?after=x", [], "after= must be a whole number"),
            ]
        )
        func notUnderstood(_ method: String, _ target: String, _ fields: [String], _ sentence: String) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            _ = try await RawExchange.get("/a", port: bench.port)
            let answer = try await bench.ask(method, target, fields)
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains(sentence), "\(answer)")
            _ = try await RawExchange.get("/a", port: bench.port)
            #expect(origin.requests.count == 1)
            #expect(try await bench.proxy.end() == 0)
        }

        @Test("soft=0 removes, and a purge may name more than sixteen tags")
        func manyTags() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            _ = try await RawExchange.get("/news/1", port: bench.port)
            let others = (0..<30).map { "&tag=x\($0)" }.joined()
            let answer = try await bench.ask("POST", "/purge?soft=0\(others)&tag=front")
            #expect(answer.hasSuffix("{\"purged\":1,\"soft\":false}\n"), "\(answer)")
            #expect(try await bench.proxy.end() == 0)
        }

        @Test("With a token, anyone who has it is answered, under any host name, and health needs none")
        func token() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let bench = try await Bench(origin, ["--admin-token", try folder.file("token", Self.token + "\n")])
            let basic = Data("me:\(Self.token)".utf8).base64EncodedString()
            for (fields, status) in [
                ([], 401), (["Authorization: Bearer \(Self.token)x"], 401), (["Authorization: Basic eDp5"], 401),
                (["Authorization: Bearer \(Self.token)", "Host: proxy.example"], 200),
                (["Authorization: Basic \(basic)", "X-Forwarded-For: 192.0.2.1"], 200),
                (["Authorization: Basic \(basic)", "Sec-Fetch-Site: cross-site"], 403),
            ] {
                let answer = try await bench.ask("GET", "/metrics", fields)
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(fields)")
            }
            #expect(try await bench.ask("GET", "/readyz", ["Host: proxy.example"]).hasPrefix("HTTP/1.1 200 "))
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "Connections that send nothing, or half a request, do not lock the operator out",
            arguments: ["", "GET /metrics HTTP/1.1\r\nHos"]
        )
        func halfOpen(_ text: String) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let bench = try await Bench(origin)
            let held = HeldConnections(port: bench.admin, count: 200, text: text)
            defer { held.close() }
            for _ in 1...3 {
                let answer = try await bench.ask("GET", "/metrics")
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer.prefix(200))")
            }
            #expect(try await bench.proxy.end() == 0)
        }

        @Test("What is at the path of a Unix socket and is none stays, and the proxy does not start")
        func noSocket() async throws {
            let folder = try TestFolder()
            let path = try folder.file("front", "text")
            let proxy = try ToolProcess(["proxy", "--listen", "unix:\(path)", "--origin", "http://127.0.0.1:1"])
            #expect(try await proxy.status() == 1)
            let reason = "it exists and is no socket; remove it, or choose another path"
            #expect(proxy.errorText == "holdfast: cannot listen on unix:\(path): \(reason)\n")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "text")
        }

        @Test("A Unix socket belongs to its owner alone, on both sides")
        func sockets() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let (front, admin) = (folder.path("front"), folder.path("admin"))
            let proxy = try ToolProcess([
                "proxy", "--listen", "unix:\(front)", "--origin", "http://127.0.0.1:\(origin.port)", "--admin",
                "unix:\(admin)",
            ])
            try await proxy.says("listening on unix:\(front)\n")
            let answer = try await RawExchange.ask(path: front, RawExchange.request("GET", "/x"))
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            let attributes = try FileManager.default.attributesOfItem(atPath: admin)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            let text = try await RawExchange.ask(path: admin, RawExchange.request("GET", "/metrics"))
            #expect(text.contains("holdfast_responses_total{code=\"200\"} 1"), "\(text)")
            let purged = try await RawExchange.ask(path: admin, RawExchange.request("POST", "/purge?all=1"))
            #expect(purged.contains("{\"purged\":1,"))
            #expect(try await proxy.end() == 0)
        }
    }
#endif
