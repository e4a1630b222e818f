// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import Testing

    @testable import HoldfastProxy

    @Suite("ForwardRules")
    struct ForwardRulesTests {
        @Test(
            "Loopback, private and link-local hosts are recognized in every spelling",
            arguments: [
                "localhost", "x.LOCALHOST.", "127.0.0.1", "127.255.0.3", "10.1.2.3", "172.16.0.1", "172.31.255.255",
                "192.168.0.1",
                "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "255.255.255.255", "[::1]", "[::]",
                "[fd00::1]",
                "[fe80::1]", "[ff02::1]", "[::ffff:10.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::a00:1]", "[2002:7f00:1::]",
                "2130706433",
                "0x7f.1", "127.1", "0177.0.0.1", "1.2.3.0x7f", "[::127.0.0.1]",
            ]
        )
        func isPrivate(_ host: String) {
            #expect(NetworkAddress.isPrivate(host: host))
        }

        @Test(
            "Public hosts are not taken for private ones",
            arguments: [
                "example.com", "8.8.8.8", "172.32.0.1", "172.15.0.1", "192.169.0.1", "100.128.0.1", "11.0.0.1",
                "[2001:4860::8888]",
                "[::ffff:8.8.8.8]", "localhost.example", "notlocalhost", "a1.example",
            ]
        )
        func isPublic(_ host: String) {
            #expect(!NetworkAddress.isPrivate(host: host))
        }

        @Test("By default every host is allowed; an open proxy refuses its own network")
        func defaults() throws {
            var rules = ForwardRules()
            try rules.check(host: "127.0.0.1", port: 80)
            rules.isOpen = true
            #expect(throws: ProxyRefusal.self) { try rules.check(host: "127.0.0.1", port: 80) }
            try rules.check(host: "example.com", port: 80)
            rules.deniesPrivateAddresses = false
            try rules.check(host: "127.0.0.1", port: 80)
        }

        @Test("A list of hosts alone decides, private hosts included")
        func list() throws {
            var rules = ForwardRules()
            rules.isOpen = true
            rules.allowedHosts = ["a.example", ".b.example", "*.c.example", "127.0.0.1:81", "[::1]:82", "10.0.0.1"]
            for (host, port) in [
                ("a.example", 80), ("A.EXAMPLE", 81), ("x.b.example", 80), ("y.x.c.example", 80), ("127.0.0.1", 81),
                ("[::1]", 82), ("10.0.0.1", 99),
            ] {
                try rules.check(host: host, port: port)
            }
            for (host, port) in [
                ("b.example", 80), ("xa.example", 80), ("c.example", 80), ("127.0.0.1", 80), ("[::1]", 80),
                ("example", 80),
                ("xb.example", 80),
            ] {
                #expect(throws: ProxyRefusal.self, "\(host):\(port)") { try rules.check(host: host, port: port) }
            }
        }

        @Test("A name that leads to a private address is refused when its connection is checked")
        func connections() throws {
            var rules = ForwardRules()
            try rules.admit("evil.example", port: 80, address: "127.0.0.1")
            rules.isOpen = true
            for address in ["127.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1", nil] {
                #expect(throws: ServiceError.self, "\(address ?? "none")") {
                    try rules.admit("evil.example", port: 80, address: address)
                }
            }
            try rules.admit("good.example", port: 80, address: "93.184.216.34")
            rules.allowedHosts = ["inside.example"]
            try rules.admit("inside.example", port: 80, address: "127.0.0.1")
        }
    }
#endif
