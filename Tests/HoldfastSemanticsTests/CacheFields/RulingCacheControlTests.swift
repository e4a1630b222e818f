// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("A targeted field replaces Cache-Control everywhere (RFC 9213 §2.2)")
struct RulingCacheControlTests {
    private func storability(_ fields: HeaderFields, _ options: CacheOptions = .shared) throws -> Storability {
        Storability.decide(
            request: RequestHead(target: try target()),
            response: ResponseHead(status: .ok, fields: fields),
            directive: .default,
            options: options
        )
    }

    private func lifetime(_ fields: HeaderFields, _ options: CacheOptions = .shared) throws -> Int64 {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: .ok, fields: fields),
            requestTime: .noon,
            responseTime: .noon,
            targetedFields: options.targetedFields ?? (options.mode == .shared ? [.cdnCacheControl] : [])
        ).freshnessLifetime(options).seconds
    }

    @Test(
        "Storing: only the targeted field counts in shared mode, and it does not count in private mode",
        arguments: [
            (["Cache-Control": "no-store", "CDN-Cache-Control": "max-age=9"], nil, .responseNoStore),
            (["Cache-Control": "max-age=9", "CDN-Cache-Control": "no-store"], .responseNoStore, nil),
            (["Cache-Control": "private", "CDN-Cache-Control": "max-age=9"], nil, nil),
            (["Cache-Control": "max-age=9", "CDN-Cache-Control": "max-age=soon, what ever"], nil, nil),
            (["Cache-Control": "max-age=9", "CDN-Cache-Control": ""], nil, nil),
        ] as [(HeaderFields, CacheReason?, CacheReason?)]
    )
    func storing(fields: HeaderFields, shared: CacheReason?, own: CacheReason?) throws {
        #expect(try storability(fields) == (shared.map { .doNotStore($0) } ?? .store(scope: .shared)))
        #expect(try storability(fields, .private) == (own.map { .doNotStore($0) } ?? .store(scope: .principal)))
    }

    @Test("Freshness: neither max-age nor Expires counts beside it")
    func freshness() throws {
        let fields: HeaderFields = [
            "CDN-Cache-Control": "max-age=9", "Cache-Control": "max-age=60", "Expires": date(600),
        ]
        #expect(try lifetime(fields) == 9 && lifetime(fields, .private) == 60)
        let silent: HeaderFields = ["CDN-Cache-Control": "must-revalidate", "Expires": date(600)]
        #expect(try lifetime(silent) == 0 && lifetime(silent, .private) == 600)
        var named = CacheOptions.private
        named.targetedFields = ["Holdfast-Cache-Control", .cdnCacheControl]
        #expect(try lifetime(fields, named) == 9)
        var deaf = CacheOptions.shared
        deaf.targetedFields = []
        #expect(try lifetime(fields, deaf) == 60)
    }

    @Test("Expires alone makes nothing storable beside a targeted field")
    func expiresAlone() throws {
        let head = ResponseHead(status: 599, fields: ["Expires": date(600), "CDN-Cache-Control": "must-revalidate"])
        let verdict = Storability.decide(
            request: RequestHead(target: try target()),
            response: head,
            directive: .default,
            options: .shared
        )
        #expect(verdict == .doNotStore(.noFreshness))
    }

    @Test("Freshening and stripping use it too")
    func updates() throws {
        let head = ResponseHead(
            status: .ok,
            fields: [
                "Cache-Control": "no-cache=\"x-a\"", "CDN-Cache-Control": "no-cache=\"x-b\"", "X-A": "1", "X-B": "2",
            ]
        )
        let targets: [FieldName] = [.cdnCacheControl]
        let kept = FieldUpdate.storable(head, contentDecoded: false, mode: .shared, targetedFields: targets)
        #expect(kept.fields["X-A"] == "1" && kept.fields["X-B"] == nil)
        let stored = StoredResponse(
            target: try target(),
            head: ResponseHead(status: .ok, fields: ["CDN-Cache-Control": "max-age=1"]),
            requestTime: .noon,
            responseTime: .noon,
            targetedFields: targets
        )
        let notModified = ResponseHead(
            status: 304,
            fields: ["Cache-Control": "max-age=5", "CDN-Cache-Control": "max-age=77"]
        )
        let fresh = stored.freshened(by: notModified, requestTime: .noon, responseTime: .noon, mode: .shared)
        #expect(fresh.freshnessLifetime(.shared).seconds == 77)
    }
}
