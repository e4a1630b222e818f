// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RateLimitQuotaTests {
    @Test(
        "RETRY.md §3.3: how long a quota is empty",
        arguments: [
            (["RateLimit": "\"default\";r=0;t=30"], 30), (["RateLimit": "default;r=0;t=30"], 30),
            (["RateLimit": "\"default\";r=1;t=30"], nil), (["RateLimit": "\"default\";r=0"], nil),
            (["RateLimit": "\"default\";r=0;t=0"], nil), (["RateLimit": "\"a\";t=30"], nil),
            (["RateLimit": "\"a\";r=0;t=5, \"b\";r=0;t=9, \"c\";r=4;t=99"], 9),
            (["RateLimit": "\"a\";r=0;t=5", "ratelimit": "\"b\";r=0;t=7;pk=:dHJpYWw=:"], 7),
            (["RateLimit": "\"a\";r=0;t=5", "Age": "2"], 3), (["RateLimit": "\"a\";r=0;t=5", "Age": "5"], nil),
            (["RateLimit": "\"a\";r=0;t=999999999999999"], 1_000_000_000), ([:], nil),
        ] as [(HeaderFields, Int64?)]
    )
    func wait(fields: HeaderFields, expected: Int64?) {
        #expect(RateLimitQuota.wait(fields) == expected.map { .seconds($0) })
    }

    @Test(
        "RETRY.md §3.3: malformed fields are ignored",
        arguments: [
            "", "\"a\";r=0;t=30,", "\"a;r=0;t=30", "\"a\";r=0;t=-1", "\"a\";r=-1;t=30", "\"a\";r=0.0;t=30",
            "\"a\";r=0;t=3.5", "\"a\";r=0;t=\"30\"", "\"a\";r;t=30", "(\"a\");r=0;t=30", "7;r=0;t=30", "r=0;t=30",
            "\"a\";r=0;t=9999999999999999", "\"ä\";r=0;t=30", "limit=100, remaining=0, reset=30",
        ]
    )
    func malformed(value: String) {
        #expect(RateLimitQuota.wait(["RateLimit": value]) == nil)
    }

    @Test("RETRY.md §3.3: a malformed member does not affect the others")
    func otherMembers() {
        let quotas = RateLimitQuota.read(["RateLimit": "\"a\";r=x;t=30, \"b\";r=0;t=4, \"c\";r=8"])
        let expected = [
            RateLimitQuota(policy: "b", remaining: 0, reset: 4), RateLimitQuota(policy: "c", remaining: 8, reset: nil),
        ]
        #expect(quotas == expected)
    }

    @Test("RETRY.md §3.3: waiting does not help against a policy that counts concurrent requests")
    func concurrent() {
        var fields: HeaderFields = [
            "RateLimit": "\"burst\";r=0;t=60, \"daily\";r=0;t=2",
            "RateLimit-Policy": "\"burst\";q=10;qu=\"concurrent-requests\", \"daily\";q=9;w=86400;qu=\"requests\"",
        ]
        #expect(RateLimitQuota.wait(fields) == .seconds(2))
        fields["RateLimit-Policy"] = "\"burst\";q="
        #expect(RateLimitQuota.wait(fields) == .seconds(60))
    }

    @Test(
        "The three fields of the first drafts",
        arguments: [
            ("0", "20", 20), ("1", "20", nil), ("0", "20, 30", nil), ("0", "-1", nil), ("0", "1e3", nil),
            ("", "20", nil), ("0", "99999999999999999999", 1_000_000_000),
        ] as [(String, String, Int64?)]
    )
    func older(remaining: String, reset: String, expected: Int64?) {
        var fields: HeaderFields = ["RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": remaining]
        #expect(RateLimitQuota.wait(fields) == nil)
        fields["RateLimit-Reset"] = reset
        #expect(RateLimitQuota.wait(fields) == expected.map { .seconds($0) })
        fields["RateLimit"] = "\"a\";r=3;t=1"
        #expect(RateLimitQuota.wait(fields) == nil)
    }

    @Test(arguments: propertySeeds)
    func neverTrapsAndIsMoreThanNothing(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let fields: HeaderFields = [
                "RateLimit": source.text(from: ["\"a\"", ";r=0", ";t=", "9", ",", " "], upTo: 20),
                "RateLimit-Policy": source.text(
                    from: ["\"a\"", ";qu=\"concurrent-requests\"", ",", ";w=", "1"],
                    upTo: 9
                ),
                "RateLimit-Remaining": "0", "RateLimit-Reset": source.text(from: ["9", "1"], upTo: 30),
                "Age": String(source.next() >> 32),
            ]
            #expect(RateLimitQuota.wait(fields).map { $0 > .zero } ?? true)
        }
    }
}
