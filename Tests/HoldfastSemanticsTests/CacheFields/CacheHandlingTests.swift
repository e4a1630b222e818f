// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct CacheHandlingTests {
    @Test(
        "RFC 9211 §2.2: each reason, and what happened to the request",
        arguments: [
            (CacheHandling(.hit, reason: .fresh, freshnessLeft: 30), "c;hit;ttl=30"),
            (CacheHandling(.hit, reason: .acceptedStale, freshnessLeft: -4), "c;hit;ttl=-4;detail=accepted-stale"),
            (
                CacheHandling(.hit, reason: .staleWhileRevalidate, freshnessLeft: -4),
                "c;hit;ttl=-4;detail=stale-while-revalidate"
            ),
            (CacheHandling(.hit, reason: .filledElsewhere, freshnessLeft: 5), "c;hit;ttl=5;detail=filled-elsewhere"),
            (
                CacheHandling(.hit, reason: .staleIfError, originStatus: 502, freshnessLeft: -4),
                "c;fwd=stale;fwd-status=502;ttl=-4;detail=stale-if-error"
            ),
            (CacheHandling(.hit, reason: .disconnected, freshnessLeft: -4), "c;fwd=stale;ttl=-4;detail=disconnected"),
            (CacheHandling(.hit, reason: .patience, freshnessLeft: 4), "c;fwd=request;ttl=4;detail=patience"),
            (CacheHandling(.forwarded, reason: .notStored, isStored: true), "c;fwd=uri-miss;stored"),
            (CacheHandling(.forwarded, reason: .noVariant), "c;fwd=vary-miss"),
            (CacheHandling(.forwarded, reason: .stale), "c;fwd=stale"),
            (CacheHandling(.forwarded, reason: .partial), "c;fwd=partial"),
            (CacheHandling(.forwarded, reason: .unreadable), "c;fwd=miss;detail=unreadable"),
            (
                CacheHandling(.revalidated, reason: .mustValidate, freshnessLeft: 9),
                "c;fwd=request;fwd-status=304;ttl=9;detail=must-validate"
            ),
            (
                CacheHandling(.revalidated, reason: .softPurged, freshnessLeft: 9),
                "c;fwd=stale;fwd-status=304;ttl=9;detail=soft-purged"
            ),
            (CacheHandling(.collapsed, reason: .notStored, isStored: true), "c;fwd=uri-miss;stored;collapsed"),
            (CacheHandling(.bypassed, reason: .method), "c;fwd=method"),
            (CacheHandling(.bypassed, reason: .content), "c;fwd=bypass;detail=content"),
        ]
    )
    func entries(handling: CacheHandling, expected: String) {
        #expect(CacheStatus([handling.entry(of: "c")]).description == expected)
    }

    @Test("RFC 9211 §2.7: the key is shown if it is given")
    func key() {
        let entry = CacheHandling(.hit, reason: .fresh).entry(of: "my cache", key: "GET /a")
        #expect(CacheStatus([entry]).description == "\"my cache\";hit;key=\"GET /a\"")
    }
}
