// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("Whom the inspector refuses", .timeLimit(.minutes(20)))
    struct InspectorGuardTests {
        private static let routes = ["/", "/api/summary", "/api/calls", "/api/entries", "/api/entry?id=0", "/nothing"]

        private static func status(_ request: InspectorRequest) async -> Int {
            await InspectorBench().desk.answer(request).status.rawValue
        }

        @Test(
            "A host name that leads here but is not ours is refused on every route (DNS rebinding)",
            arguments: [
                "evil.example", "evil.example:9090", "127.0.0.1", "127.0.0.1:9091", "localhost:909",
                "localhost.evil.example:9090",
                "127.0.0.1:9090@evil.example", "", "[::2]:9090", "127.0.0.1:9090, evil.example", "0.0.0.0:9090",
                "127.0.0.1.:9090",
            ],
            routes
        )
        func hosts(host: String, route: String) async {
            #expect(await Self.status(.page(.get, route, ["Host": host])) == 403)
        }

        @Test(
            "Our own host names are accepted",
            arguments: ["127.0.0.1:9090", "localhost:9090", "LOCALHOST:9090", "[::1]:9090"]
        )
        func ownHosts(host: String) async {
            #expect(await Self.status(.page(.get, "/", ["Host": host])) == 200)
        }

        @Test(
            "The address that the listener was given is one of our own names, and no other is",
            arguments: [
                ("127.0.0.2", "127.0.0.2:9090", true), ("127.0.0.2", "127.0.0.1:9090", true),
                ("127.0.0.2", "127.0.0.3:9090", false), ("::FFFF:127.0.0.1", "[::ffff:127.0.0.1]:9090", true),
                ("127.0.0.2", "127.0.0.2", false),
            ]
        )
        func configuredHost(_ configured: String, _ host: String, _ isTaken: Bool) {
            let guarding = InspectorGuard(host: configured, port: 9090)
            let result = Result { try guarding.check(.page(.get, "/", ["Host": host])) }
            #expect(((try? result.get()) != nil) == isTaken)
        }

        @Test("Port 80 may be left out of Host", arguments: [("localhost", 80, true), ("localhost", 9090, false)])
        func defaultPort(host: String, port: Int, isTaken: Bool) {
            let guarding = InspectorGuard(port: port)
            let result = Result { try guarding.check(.page(.get, "/", ["Host": host])) }
            #expect(((try? result.get()) != nil) == isTaken)
        }

        @Test("A request without Host, or with two, is refused")
        func hostLines() async {
            var fields = HeaderFields()
            let bare = InspectorRequest(method: .get, target: "/", fields: fields, body: .none, remoteAddress: "::1")
            #expect(await Self.status(bare) == 403)
            fields.append(.host, "localhost:9090")
            fields.append(.host, "localhost:9090")
            let double = InspectorRequest(method: .get, target: "/", fields: fields, body: .none, remoteAddress: "::1")
            #expect(await Self.status(double) == 403)
        }

        @Test(
            "Other machines and unknown addresses are refused",
            arguments: [
                nil, "192.168.0.2", "8.8.8.8", "::ffff:8.8.8.8", "fe80::1", "1.127.0.0", "127.0.0.1.5", "127.0.0",
                "127.0.0.256",
                "127.0.0.1:80", "evil", "", "::", "::ffff:128.0.0.1",
            ] as [String?],
            routes
        )
        func addresses(address: String?, route: String) async {
            #expect(await Self.status(.page(.get, route, from: address)) == 403)
        }

        @Test(
            "This machine is allowed",
            arguments: ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::FFFF:127.0.0.1"]
        )
        func ownAddresses(address: String) async {
            #expect(await Self.status(.page(.get, "/", from: address)) == 200)
        }

        @Test(
            "Pages of other origins are refused on every route",
            arguments: [
                "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:9091", "https://127.0.0.1:9090", "null",
                "http://localhost:9090", "file://", "",
            ],
            routes
        )
        func origins(origin: String, route: String) async {
            #expect(await Self.status(.page(.get, route, ["Origin": origin])) == 403)
        }

        @Test(
            "A request that the browser marks as another site's is refused",
            arguments: ["cross-site", "same-site", "", "x"],
            routes
        )
        func sites(site: String, route: String) async {
            #expect(await Self.status(.page(.get, route, ["Sec-Fetch-Site": site])) == 403)
        }

        @Test(
            "Requests through a proxy are refused, because anybody may be behind it",
            arguments: ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"]
        )
        func proxies(name: String) async throws {
            let fields = HeaderFields().with(name, "1.1 proxy")
            for route in Self.routes { #expect(await Self.status(.page(.get, route, fields)) == 403) }
        }

        @Test("A typed address, and a client that sends no origin, are allowed")
        func typed() async {
            #expect(await Self.status(.page(.get, "/", ["Sec-Fetch-Site": "none"])) == 200)
            let plain: HeaderFields = ["Host": "localhost:9090"]
            let request = InspectorRequest(method: .get, target: "/", fields: plain, body: .none, remoteAddress: "::1")
            #expect(await Self.status(request) == 200)
        }

        @Test("A purge needs the token of the page, complete and once")
        func word() async throws {
            let all = #"{"selection": "all", "soft": false}"#
            let bench = InspectorBench()
            try await bench.load("http://origin.example/a")
            let words = [
                "", "a1", String(repeating: "a1", count: 31) + "a2", InspectorBench.word + "0",
                InspectorBench.word.uppercased(),
            ]
            for word in words {
                #expect(await bench.desk.answer(.order(all, ["X-Holdfast-Inspector": word])).status == 403, "\(word)")
            }
            var request = InspectorRequest.order(all)
            var fields = request.fields
            fields.removeAll(InspectorGuard.wordField)
            request = .page(.post, "/api/purge", fields, body: request.body)
            #expect(await bench.desk.answer(request).status == 403)
            fields = fields.with("X-Holdfast-Inspector", InspectorBench.word).with(
                "X-Holdfast-Inspector",
                InspectorBench.word
            )
            #expect(await bench.desk.answer(.page(.post, "/api/purge", fields, body: request.body)).status == 403)
            #expect(bench.cache.store.statistics.entryCount == 1)
            #expect(await bench.desk.answer(.order(all)).status == 200)
            #expect(bench.cache.store.statistics.entryCount == 0)
        }

        @Test(
            "A purge must be declared as JSON, so that no form can send one",
            arguments: [
                "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp",
            ]
        )
        func contentType(type: String) async {
            #expect(await Self.status(.order(#"{"selection": "all", "soft": false}"#, ["Content-Type": type])) == 415)
        }

        @Test("A charset parameter does not matter")
        func charset() async {
            let fields: HeaderFields = ["Content-Type": "Application/JSON; charset=utf-8"]
            #expect(await Self.status(.order(#"{"selection": "all", "soft": false}"#, fields)) == 200)
        }

        @Test(
            "Only POST changes anything",
            arguments: ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"]
        )
        func methods(method: String) async throws {
            let bench = InspectorBench()
            try await bench.load("http://origin.example/a")
            let order = InspectorRequest.order(#"{"selection": "all", "soft": false}"#)
            let request = InspectorRequest.page(
                RequestMethod(rawValue: method),
                "/api/purge",
                order.fields,
                body: order.body
            )
            let response = await bench.desk.answer(request)
            #expect(response.status == 405)
            #expect(response.fields["Allow"] == "POST")
            #expect(bench.cache.store.statistics.entryCount == 1)
        }

        @Test("A token is 64 random digits, different each time")
        func randomWords() {
            let words = (0..<100).map { _ in InspectorGuard.randomWord() }
            #expect(Set(words).count == 100)
            #expect(words.allSatisfy { $0.count == 64 && $0.allSatisfy { $0.isHexDigit } })
        }

        @Test("Tokens are compared in full")
        func comparison() {
            #expect(InspectorGuard.isEqual("abc", to: "abc"))
            for other in ["", "ab", "abd", "abcd", "Abc"] { #expect(!InspectorGuard.isEqual("abc", to: other)) }
        }
    }
#endif
