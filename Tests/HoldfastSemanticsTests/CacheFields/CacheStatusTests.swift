// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct CacheStatusTests {
    static let entries: [(String, CacheStatusEntry)] = [
        ("Origin", CacheStatusEntry(cache: "Origin")),
        ("Edge; hit; ttl=30", CacheStatusEntry(cache: "Edge", isHit: true, timeToLive: 30)),
        (#""Edge 7"; hit=?1"#, CacheStatusEntry(cache: "Edge 7", isHit: true)),
        ("a; hit; ttl=-412", CacheStatusEntry(cache: "a", isHit: true, timeToLive: -412)),
        ("a; hit=?0", CacheStatusEntry(cache: "a")),
        ("a; fwd=uri-miss", CacheStatusEntry(cache: "a", forward: .uriMiss)),
        (
            "a; fwd=stale; fwd-status=304; collapsed; stored; ttl=9",
            CacheStatusEntry(
                cache: "a",
                forward: .stale,
                forwardStatus: 304,
                timeToLive: 9,
                isStored: true,
                isCollapsed: true
            )
        ),
        (
            #"a; fwd=bypass; key="GET /a"; detail="too big""#,
            CacheStatusEntry(cache: "a", forward: .bypass, key: "GET /a", detail: "too big")
        ),
        ("a; fwd=method; detail=word", CacheStatusEntry(cache: "a", forward: .method, detail: "word")),
    ]

    @Test("RFC 9211 §2: one cache's parameters", arguments: entries)
    func reading(value: String, expected: CacheStatusEntry) throws {
        let status = try #require(CacheStatus(parsing: value))
        #expect(status.entries == [expected])
        #expect(CacheStatus(parsing: status.description) == status)
    }

    @Test("RFC 9211 §2.2: every reason has its token")
    func reasons() {
        let tokens: [(CacheStatusEntry.ForwardReason, String)] = [
            (.bypass, "bypass"), (.method, "method"), (.uriMiss, "uri-miss"), (.varyMiss, "vary-miss"), (.miss, "miss"),
            (.request, "request"), (.stale, "stale"), (.partial, "partial"),
        ]
        for (reason, token) in tokens {
            #expect(CacheStatus(parsing: "a;fwd=\(token)")?.entries.first?.forward == reason)
            #expect(CacheStatus([CacheStatusEntry(cache: "a", forward: reason)]).description == "a;fwd=\(token)")
        }
    }

    @Test(
        "RFC 9211 §2: an unknown or wrongly typed parameter is ignored, the rest is kept",
        arguments: [
            "a; x=1; hit; y", "a; hit; ttl=1.5", "a; hit; ttl=soon", "a; hit; key=token; detail=5",
            "a; hit; fwd=\"miss\"",
            "a; hit; fwd=later", "a; hit; fwd=miss; fwd=1", "1; hit, a; hit, (b c), ?1, :aGk=:",
            "a; hit; stored; collapsed",
            "a; hit; fwd-status=200", "a; hit=?1; stored=1",
        ]
    )
    func leniency(value: String) {
        #expect(CacheStatus(parsing: value)?.entries == [CacheStatusEntry(cache: "a", isHit: true)])
    }

    @Test("RFC 9211 §2.2: a reason for forwarding takes precedence over a claimed hit")
    func contradiction() {
        let expected = CacheStatusEntry(cache: "a", forward: .miss)
        #expect(CacheStatus(parsing: "a; hit; fwd=miss")?.entries == [expected])
        let entry = CacheStatusEntry(cache: "a", isHit: true, forward: .miss)
        #expect(CacheStatus([entry]).description == "a;fwd=miss")
    }

    @Test("A field that is not a List has no status", arguments: ["a,", "a; hit b", "a; Hit", "&", "a;", "\"open"])
    func malformed(value: String) {
        #expect(CacheStatus(parsing: value) == nil)
        #expect(CacheStatus.appending(CacheStatusEntry(cache: "b", isHit: true), to: value) == "b;hit")
    }

    @Test("RFC 9211 §2: the lines form one list, the cache closest to the origin first")
    func lines() {
        let fields: HeaderFields = ["Cache-Status": "near-origin;fwd=miss", "cache-status": "near-user;hit"]
        #expect(CacheStatus(fields)?.entries.map(\.cache) == ["near-origin", "near-user"])
        #expect(CacheStatus([:] as HeaderFields) == nil)
        #expect(CacheStatus(["Cache-Status": ""] as HeaderFields)?.entries == [])
        #expect(CacheStatus().description.isEmpty)
    }

    @Test("RFC 9211 §2: appending leaves the entries of other caches unchanged")
    func appending() {
        let entry = CacheStatusEntry(cache: "own", forward: .stale, forwardStatus: 304, timeToLive: -3, isStored: true)
        let written = "own;fwd=stale;fwd-status=304;ttl=-3;stored"
        #expect(CacheStatus.appending(entry, to: nil) == written)
        #expect(CacheStatus.appending(entry, to: "") == written)
        #expect(
            CacheStatus.appending(entry, to: #"a;hit;x-own=(1);"#) == written
        )
        #expect(
            CacheStatus.appending(entry, to: #"  "A b";hit;x-own=1.50,c;fwd=odd"#)
                == #""A b";hit;x-own=1.5, c;fwd=odd, "# + written
        )
    }

    @Test("What the format cannot hold is replaced or clamped")
    func cleaning() {
        let entry = CacheStatusEntry(
            cache: "né\r\n",
            forward: .miss,
            forwardStatus: StatusCode(.max),
            timeToLive: .min,
            key: "a\"\0é",
            detail: ""
        )
        #expect(
            CacheStatus([entry]).description
                == #""n????";fwd=miss;fwd-status=999999999999999;ttl=-999999999999999;key="a\"???";detail="""#
        )
    }
}
