// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("Responses marked as stale")
struct SoftPurgeTests {
    private func stored(_ cacheControl: String, _ fields: HeaderFields) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: .ok, fields: (["Cache-Control": cacheControl] as HeaderFields).merging(fields)),
            requestTime: .noon,
            responseTime: .noon,
            givenLifetime: 5
        )
    }

    private func decide(
        _ candidates: [StoredResponse],
        _ fields: HeaderFields = [:],
        _ directive: CacheDirective = .default,
        after seconds: Int64 = 10
    ) throws -> ReasonedReuseDecision {
        ReasonedReuseDecision(
            request: RequestHead(method: .get, target: try target(), fields: fields),
            candidates: candidates,
            directive: directive,
            now: .noon.plus(seconds),
            options: .private,
            secret: []
        )
    }

    @Test(
        "It is revalidated before any use, whatever its freshness or what it and the caller tolerate (RFC 9111 §4.4)",
        arguments: [
            ("max-age=60", CacheDirective.default, 10), ("max-age=60, immutable", .default, 10),
            ("max-age=60, stale-while-revalidate=600, stale-if-error=600", .default, 100),
            ("max-age=60", .maxStale(.seconds(1000)), 100), ("max-age=60", CacheDirective(ignoresAge: true), 10),
        ] as [(String, CacheDirective, Int64)]
    )
    func confirmed(cacheControl: String, directive: CacheDirective, seconds: Int64) throws {
        let tagged = try stored(cacheControl, ["ETag": "\"a\""])
        let dated = try stored(cacheControl, ["Last-Modified": date(-9)])
        let plain = try stored(cacheControl, [:])
        for response in [tagged, dated] {
            let reasoned = try decide([response.needingConfirmation], [:], directive, after: seconds)
            #expect(reasoned.decision == .revalidate(candidates: [0]))
            #expect(reasoned.reason == .softPurged)
            #expect(reasoned.staleAllowance == .none)
        }
        let reasoned = try decide([plain.needingConfirmation], [:], directive, after: seconds)
        #expect(reasoned.decision == .forward(.softPurged))
        #expect(reasoned.staleAllowance == .none)
        var mayNotSend = directive
        mayNotSend.onlyIfCached = true
        #expect(
            try decide([tagged.needingConfirmation], [:], mayNotSend, after: seconds).decision
                == .unsatisfiable(.softPurged)
        )
    }

    @Test("All variants with an entity tag are offered, marked or not")
    func variants() throws {
        let marked = try stored("max-age=60", ["ETag": "\"a\"", "Date": date(5)]).needingConfirmation
        let other = try stored("max-age=60", ["ETag": "\"b\""])
        #expect(try decide([other, marked]).decision == .revalidate(candidates: [1, 0]))
    }

    @Test("A 304 removes the mark and keeps the call's lifetime; the fields of a HEAD do not (RFC 9111 §4.3.5)")
    func lifted() throws {
        let marked = try stored("max-age=60", ["ETag": "\"a\""]).needingConfirmation
        let head = ResponseHead(status: .notModified, fields: ["ETag": "\"a\""])
        let fresh = marked.freshened(by: head, requestTime: .noon, responseTime: .noon, mode: .private)
        #expect(!fresh.needsConfirmation)
        #expect(fresh.givenLifetime == 5)
        let given = marked.freshened(
            by: head,
            requestTime: .noon,
            responseTime: .noon,
            mode: .private,
            givenLifetime: 7
        )
        #expect(given.givenLifetime == 7)
        let update = headAdmission(
            of: ResponseHead(status: .ok, fields: ["ETag": "\"a\"", "Cache-Control": "max-age=90"]),
            about: marked,
            to: RequestHead(method: .head, target: try target(), fields: [:])
        )
        guard case .freshen(let updated) = update.action else {
            Issue.record("\(update)")
            return
        }
        #expect(updated.needsConfirmation)
        #expect(updated.cacheControl.maxAge == 90)
    }

    @Test("Marking changes nothing else, and a response that cannot be revalidated becomes useless")
    func marking() throws {
        let tagged = try stored("max-age=60", ["ETag": "\"a\""])
        let marked = tagged.needingConfirmation
        #expect(marked.head == tagged.head && marked.givenLifetime == 5)
        #expect(marked.currentAge(now: .noon.plus(9)) == 9)
        #expect(marked.uselessAfter(.private) == tagged.uselessAfter(.private))
        #expect(try stored("max-age=60", [:]).needingConfirmation.uselessAfter(.private) == .noon)
    }
}
