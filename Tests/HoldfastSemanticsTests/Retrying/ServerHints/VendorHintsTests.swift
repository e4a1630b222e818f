// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct VendorHintsTests {
    private static let noon = Timestamp.noon.secondsSinceEpoch

    private func hint(_ hints: VendorHints, _ fields: HeaderFields, status: StatusCode = 503) -> ServerHint {
        var rules = RetryRules()
        rules.vendorHints = hints
        return rules.hint(ResponseHead(status: status, fields: fields), receivedAt: .noon)
    }

    @Test(
        "RETRY.md §3.2.7: milliseconds; a bad value is ignored",
        arguments: [
            (["retry-after-ms": "530"], 530), (["x-amz-retry-after": "1500"], 1500), (["X-Amz-Retry-After": "0"], 0),
            (["x-amz-retry-after": "-1"], nil), (["x-amz-retry-after": "1.5"], nil), (["retry-after-ms": "0x10"], nil),
            (["retry-after-ms": ""], nil), (["retry-after-ms": "20", "x-amz-retry-after": "30"], 30),
            (["retry-after-ms": "20", "Retry-After": "1"], 1000),
            (["retry-after-ms": "2500", "Retry-After": "2"], 2500),
            (["retry-after-ms": "2500", "Age": "1"], 1500), (["retry-after-ms": "2500", "Age": "3"], 0),
            (["retry-after-ms": "99999999999999999999"], 1_000_000_000_000),
        ] as [(HeaderFields, Int64?)]
    )
    func milliseconds(fields: HeaderFields, expected: Int64?) {
        #expect(hint(.milliseconds, fields).wait == expected.map { .milliseconds($0) })
        #expect(!hint(.milliseconds, fields).forbidsRetry)
        let standard = fields.contains(.retryAfter) ? RetryAfter.delay(fields, receivedAt: .noon) : nil
        #expect(hint(VendorHints.all.subtracting(.milliseconds), fields) == ServerHint(wait: standard))
    }

    @Test(
        "RETRY.md §3.2.7: a negative or unreadable grpc-retry-pushback-ms means never",
        arguments: [
            ("0", ServerHint(wait: .zero)), ("2500", ServerHint(wait: .milliseconds(2500))),
            ("-1", ServerHint(forbidsRetry: true)), ("soon", ServerHint(forbidsRetry: true)),
            ("", ServerHint(forbidsRetry: true)), ("1.5", ServerHint(forbidsRetry: true)),
        ]
    )
    func pushback(value: String, expected: ServerHint) {
        #expect(hint(.pushback, ["grpc-retry-pushback-ms": value]) == expected)
        #expect(hint(VendorHints.all.subtracting(.pushback), ["grpc-retry-pushback-ms": value]) == ServerHint())
        var call = RetryCall(.unjittered { $0.vendorHints = .pushback })
        guard expected.forbidsRetry else { return }
        #expect(call.decide(.status(500, ["grpc-retry-pushback-ms": value])) == .stop(.serverForbids))
        #expect(call.decide(.status(421, ["grpc-retry-pushback-ms": value])) == .stop(.serverForbids))
    }

    @Test("RETRY.md §3.2.7: in x-should-retry, only `false` counts")
    func shouldRetry() {
        #expect(hint(.shouldRetry, ["x-should-retry": "false"]).forbidsRetry)
        #expect(hint(.shouldRetry, ["X-Should-Retry": "False"]).forbidsRetry)
        for value in ["true", "", "0", "no"] { #expect(hint(.shouldRetry, ["x-should-retry": value]) == ServerHint()) }
        #expect(hint(VendorHints.all.subtracting(.shouldRetry), ["x-should-retry": "false"]) == ServerHint())
        var call = RetryCall(.unjittered { $0.vendorHints = .shouldRetry })
        #expect(call.decide(.status(404, ["x-should-retry": "true"])) == .stop(.notRetryable))
        #expect(call.decide(.status(503, ["x-should-retry": "false"])) == .stop(.serverForbids))
    }

    @Test(
        "RETRY.md §3.2.7: X-RateLimit-Reset is a delay or a time, depending on its size",
        arguments: [
            (["X-RateLimit-Reset": "30"], 30), (["X-RateLimit-Reset": "\(noon + 30)"], 30),
            (["X-RateLimit-Reset": "\(noon + 30)000"], 30), (["X-RateLimit-Reset": "\(noon - 30)"], nil),
            (["X-RateLimit-Reset": "0"], nil), (["X-RateLimit-Reset": "-5"], nil), (["X-RateLimit-Reset": "3.5"], nil),
            (["X-RateLimit-Reset": "999999999"], 999_999_999),
            (["X-RateLimit-Reset": "30", "X-RateLimit-Remaining": "0"], 30),
            (["X-RateLimit-Reset": "30", "X-RateLimit-Remaining": "1"], nil),
            (["X-RateLimit-Reset": "30", "X-RateLimit-Remaining": "x"], nil),
            (["X-RateLimit-Reset": "\(noon + 3630)", "Date": date(3600)], 30),
            (["X-RateLimit-Reset": "30", "Age": "10"], 20),
            (["X-RateLimit-Reset": "30", "Retry-After": "2"], 2),
            (["X-RateLimit-Reset": "30", "RateLimit": "\"a\";r=0;t=40"], 40),
        ] as [(HeaderFields, Int64?)]
    )
    func rateLimitReset(fields: HeaderFields, expected: Int64?) {
        #expect(hint(.rateLimitReset, fields).wait == expected.map { .seconds($0) })
        #expect(hint([], ["X-RateLimit-Reset": "30"]) == ServerHint())
    }

    @Test(arguments: propertySeeds)
    func neverTraps(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var fields = HeaderFields()
            for name in ["retry-after-ms", "grpc-retry-pushback-ms", "X-RateLimit-Reset"] as [FieldName] {
                fields[name] = source.text(from: ["9", "1", "0", "-"], upTo: 24)
            }
            fields[.age] = String(source.next())
            fields[.date] = HTTPDate(Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))).description
            let head = ResponseHead(status: 429, fields: fields)
            var rules = RetryRules()
            rules.vendorHints = .all
            let received = Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))
            #expect(rules.hint(head, receivedAt: received).wait.map { $0 >= .zero } ?? true)
            #expect(rules.gateNotice(head, receivedAt: received).map { $0.asked > .zero } ?? true)
        }
    }
}
