// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    @testable import HoldfastProxy

    @Suite("Fields that proxies add")
    struct ProxyFieldsTests {
        @Test("RFC 9110 §7.6.3: Via names this proxy after the others, and detects that a request was here before")
        func via() {
            let via = ViaField(name: "Edge-1")
            var fields: HeaderFields = ["Via": "1.0 fred, 1.1 p.example"]
            #expect(!via.hasPassed(fields))
            via.append(to: &fields, version: "1.0")
            #expect(fields[.via] == "1.0 fred, 1.1 p.example, 1.0 Edge-1")
            #expect(via.hasPassed(fields))
            #expect(ViaField(name: "edge-1").hasPassed(["Via": "1.1 other", "via": "HTTP/1.1\tEDGE-1 (a comment)"]))
            #expect(!ViaField(name: "edge-1").hasPassed(["Via": "1.1 edge-12, 1.1 my-edge-1, edge-1"]))
        }

        @Test("A pseudonym is a token that differs between proxies")
        func pseudonym() {
            var generator = SeededGenerator(seed: 7)
            let names = (0..<100).map { _ in ViaField.pseudonym(using: &generator) }
            #expect(Set(names).count == 100)
            #expect(names.allSatisfy { FieldName($0) != nil && $0.utf8.count == 17 })
        }

        @Test("The client's address is added only if configured")
        func clientAddress() {
            func added(_ kind: ClientAddressFields, _ address: String?) -> [String] {
                var fields: HeaderFields = ["X-Forwarded-For": "1.2.3.4"]
                kind.add(address, host: "a.example:81", scheme: "https", to: &fields)
                return fields.map { "\($0.name.rawName): \($0.value)" }
            }
            #expect(added(.none, "192.0.2.1") == ["X-Forwarded-For: 1.2.3.4"])
            let asked = ["X-Forwarded-Proto: https", "X-Forwarded-Host: a.example:81"]
            #expect(
                added(.xForwardedFor, "192.0.2.1") == ["X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 192.0.2.1"] + asked
            )
            #expect(added(.xForwardedFor, nil) == ["X-Forwarded-For: 1.2.3.4"] + asked)
            let rest = ";host=\"a.example:81\";proto=https"
            #expect(added(.forwarded, "192.0.2.1").last == "Forwarded: for=192.0.2.1" + rest)
            #expect(added(.forwarded, "2001:db8::1").last == "Forwarded: for=\"[2001:db8::1]\"" + rest)
            #expect(added(.forwarded, nil).last == "Forwarded: for=unknown" + rest)
        }

        @Test(
            "RFC 7239: of a client's Forwarded the addresses stay, and nothing of what it says was requested",
            arguments: [
                (["for=9.9.9.9;host=evil.example;proto=https"], ["for=9.9.9.9"]),
                (
                    ["For=_a;By=\"[2001:db8::1]:80\"", "for=b, host=evil.example"],
                    ["For=_a;By=\"[2001:db8::1]:80\"", "for=b"]
                ),
                (["for=a;secret=\"x,y;z\", for=b"], ["for=a", "for=b"]), ([""], []),
                // An open quotation would make what follows a part of it.
                (["for=\"x", "for=b"], ["for=b"]), (["for=\"x\\\""], []), (["for=\"a, for=b;host=evil.example\""], []),
                (["for=1.2.3.4:80"], []), (["for = a"], []), (["for"], []), (["for=a b"], []), (["=a"], []),
            ] as [([String], [String])]
        )
        func forwarded(_ lines: [String], _ kept: [String]) {
            var fields = HeaderFields()
            for line in lines { fields.append("forwarded", line) }
            ClientAddressFields.forwarded.add("192.0.2.1", host: "a.example", scheme: "http", to: &fields)
            let own = "for=192.0.2.1;host=\"a.example\";proto=http"
            #expect(fields.values(of: "Forwarded") == [(kept + [own]).joined(separator: ", ")])
        }

        @Test(
            "RFC 9110 §7.6.2: Max-Forwards counts the hops of TRACE and OPTIONS",
            arguments: [
                ("TRACE", "0", MaxForwards.Decision.answer), ("OPTIONS", "0", .answer), ("OPTIONS", "3", .forward(2)),
                ("TRACE", "00", .answer), ("GET", "0", .pass), ("TRACE", "-1", .pass), ("TRACE", "x", .pass),
                ("TRACE", "", .pass),
                ("OPTIONS", "99999999999999999999", .forward(Int.max - 1)),
            ]
        )
        func maxForwards(_ method: String, _ value: String, _ decision: MaxForwards.Decision) {
            #expect(MaxForwards.decide(RequestMethod(rawValue: method), fields: [MaxForwards.name: value]) == decision)
        }

        @Test("RFC 9110 §7.6.2: without the field, or with two, nothing is counted")
        func maxForwardsOdd() {
            #expect(MaxForwards.decide(.trace, fields: HeaderFields()) == .pass)
            #expect(MaxForwards.decide(.trace, fields: ["Max-Forwards": "1", "max-forwards": "0"]) == .pass)
        }

        @Test("RFC 9110 §9.3.8: TRACE shows no secrets")
        func trace() {
            let text = MaxForwards.trace(
                .trace,
                target: "/x",
                version: "1.1",
                fields: ["Host": "a", "Cookie": "s", "Authorization": "s", "X": "y"]
            )
            #expect(text == "TRACE /x HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n")
        }

        @Test("B3: repeated request fields are joined by a comma and a space, Cookie by a semicolon")
        func joined() {
            let fields: HeaderFields = [
                "Accept": "a", "Cookie": "x=1", "X-Empty": "", "accept": "b", "cookie": "y=2", "ACCEPT": "c",
            ]
            #expect(ProxiedRequest.joined(fields) == ["Accept": "a, b, c", "Cookie": "x=1; y=2", "X-Empty": ""])
        }

        @Test(
            "An origin is scheme, host and port",
            arguments: [
                ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "127.0.0.1", 3000),
                ("HTTP://Example.COM:80/", "http://example.com", "example.com", 80),
                ("https://example.com", "https://example.com", "example.com", 443),
                ("http://[::1]:8", "http://[::1]:8", "[::1]", 8),
            ]
        )
        func origin(_ text: String, _ origin: String, _ host: String, _ port: Int) throws {
            let read = try ProxyOrigin(text)
            #expect(read.description == origin)
            #expect(read.host == host)
            #expect(read.port == port)
        }

        @Test(
            "An invalid origin is refused with a one-line message",
            arguments: [
                "", "example.com", "localhost:3000", "ftp://a.example", "http://", "http://a.example/path",
                "http://a.example/?q",
                "http://u:p@a.example", "http://a.example/#x", "http://a.example:99999", "http://a b",
                "http://a.example\n/",
            ]
        )
        func noOrigin(_ text: String) {
            let error = #expect(throws: ProxyConfigurationError.self) { try ProxyOrigin(text) }
            #expect(error?.description.contains("u:p") == false)
        }
    }
#endif
