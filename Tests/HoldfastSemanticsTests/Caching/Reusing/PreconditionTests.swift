// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct PreconditionTests {
    private func outcome(
        _ request: HeaderFields,
        _ storedFields: HeaderFields,
        method: RequestMethod = .get,
        status: StatusCode = .ok,
        decoded: Bool = false
    ) throws -> Precondition.Outcome {
        Precondition.evaluate(
            request: RequestHead(method: method, target: try target(), fields: request),
            stored: try stored(storedFields, status: status, decoded: decoded),
            now: .noon.plus(5)
        )
    }

    @Test(
        "RFC 9110 §13.1.2: If-None-Match compares weakly",
        arguments: [
            ("\"a\"", "\"a\"", .notModified), ("W/\"a\"", "\"a\"", .notModified), ("\"a\"", "W/\"a\"", .notModified),
            ("\"x\", \"a\" ,\"y\"", "\"a\"", .notModified), ("\"x\"", "\"a\"", .full), ("*", "\"a\"", .notModified),
            ("*", nil, .notModified), ("\"a\"", nil, .full), ("\"a\", x", "\"a\"", .full), ("", "\"a\"", .full),
        ] as [(String, String?, Precondition.Outcome)]
    )
    func ifNoneMatch(value: String, tag: String?, expected: Precondition.Outcome) throws {
        var fields: HeaderFields = [:]
        if let tag { fields[.eTag] = tag }
        #expect(try outcome(["If-None-Match": value], fields) == expected)
        #expect(try outcome(["If-None-Match": value], fields, method: .head) == expected)
        #expect(try outcome(["If-None-Match": value], fields, decoded: true) == expected)
    }

    @Test("RFC 9110 §13.2.2: If-None-Match takes precedence over If-Modified-Since")
    func precedence() throws {
        let fields: HeaderFields = ["ETag": "\"a\"", "Last-Modified": date(-5000)]
        #expect(try outcome(["If-None-Match": "\"a\"", "If-Modified-Since": date(-10_000)], fields) == .notModified)
        #expect(try outcome(["If-None-Match": "\"x\"", "If-Modified-Since": date(-10)], fields) == .full)
        #expect(try outcome(["If-None-Match": "junk", "If-Modified-Since": date(-10)], fields) == .full)
    }

    @Test(
        "RFC 9111 §4.3.2: If-Modified-Since is compared with Last-Modified, else Date, else the time of receipt",
        arguments: [
            (date(-3000), ["Last-Modified": date(-3000)], .notModified),
            (date(-2000), ["Last-Modified": date(-3000)], .notModified),
            (date(-3001), ["Last-Modified": date(-3000)], .full),
            (date(-3000), ["Date": date(-100)], .full), (date(-100), ["Date": date(-100)], .notModified),
            (date(-1), [:], .full), (date(0), [:], .notModified),
            ("Thursday, 17-Sep-26 12:00:00 GMT", ["Last-Modified": date(0)], .notModified),
            ("soon", ["Last-Modified": date(-3000)], .full),
        ] as [(String, HeaderFields, Precondition.Outcome)]
    )
    func ifModifiedSince(value: String, fields: HeaderFields, expected: Precondition.Outcome) throws {
        #expect(try outcome(["If-Modified-Since": value], fields) == expected)
    }

    @Test("RFC 9110 §13.1.3: two dates are ignored")
    func repeatedDate() throws {
        let request: HeaderFields = ["If-Modified-Since": date(0), "if-modified-since": date(0)]
        #expect(try outcome(request, ["Last-Modified": date(-5)]) == .full)
    }

    @Test(
        "RFC 9111 §4.3.2: conditions that only an origin can evaluate are forwarded",
        arguments: ["If-Match", "If-Unmodified-Since"]
    )
    func originOnly(name: String) throws {
        var request: HeaderFields = ["If-None-Match": "*"]
        request.append(rawName: name, value: "*")
        #expect(try outcome(request, ["ETag": "\"a\""]) == .forward)
        #expect(try outcome(["If-None-Match": "*"], [:], method: .put) == .forward)
        #expect(try outcome(["If-Modified-Since": date(0)], [:], method: .post) == .forward)
    }

    @Test(
        "RFC 10008: a QUERY without conditions of its own gets the full response",
        arguments: [RequestMethod.query, .post]
    )
    func content(method: RequestMethod) throws {
        #expect(try outcome([:], ["ETag": "\"a\"", "Last-Modified": date(-9)], method: method) == .full)
    }

    @Test("RFC 9110 §13.2.1: preconditions apply only to a 200 or 206")
    func status() throws {
        let request: HeaderFields = ["If-None-Match": "\"a\"", "If-Modified-Since": date(0)]
        for status in [StatusCode.notFound, .movedPermanently, .noContent] {
            #expect(try outcome(request, ["ETag": "\"a\""], status: status) == .full)
        }
        #expect(try outcome(request, ["ETag": "\"a\""], status: .partialContent) == .notModified)
    }

    @Test("RFC 9110 §15.4.5: the fields of a 304")
    func notModifiedHead() throws {
        var fields: HeaderFields = [
            "Date": date(-10), "Cache-Control": "max-age=90", "ETag": "\"a\"", "Expires": date(9), "Vary": "Accept",
            "Content-Location": "/c", "Last-Modified": date(-90), "Content-Type": "a/b", "Content-Length": "7",
            "X-Other": "1", "Content-Encoding": "gzip", "Set-Cookie": "a=b",
        ]
        let head = Precondition.notModifiedHead(for: try stored(fields), now: .noon.plus(5))
        let expected: HeaderFields = [
            "Date": date(-10), "Cache-Control": "max-age=90", "ETag": "\"a\"", "Expires": date(9), "Vary": "Accept",
            "Content-Location": "/c", "Age": "15",
        ]
        #expect(head == ResponseHead(status: .notModified, fields: expected))
        fields.removeAll(.eTag)
        let untagged = Precondition.notModifiedHead(for: try stored(fields), now: .noon)
        #expect(untagged.fields[.lastModified] == date(-90))
    }

    @Test(
        "RFC 9111 §4.3.2: the caller's conditions and the cache's in one request",
        arguments: [
            ([:], ["If-None-Match": "\"a\"", "If-Modified-Since": date(-9)]),
            (["If-None-Match": "\"a\""], ["If-None-Match": "\"a\"", "If-Modified-Since": date(-9)]),
            (["If-None-Match": "\"x\", \"a\", W/\"y\", \"x\""], ["If-None-Match": "\"a\", \"x\", W/\"y\""]),
            (
                ["If-None-Match": "*", "If-Modified-Since": date(-1)],
                ["If-None-Match": "*", "If-Modified-Since": date(-1)]
            ),
            (["If-Modified-Since": date(-1)], ["If-None-Match": "\"a\"", "If-Modified-Since": date(-9)]),
            (["If-None-Match": "W/\"a\""], ["If-None-Match": "\"a\"", "If-Modified-Since": date(-9)]),
            (["If-None-Match": "?", "Accept": "x"], ["If-None-Match": "\"a\"", "If-Modified-Since": date(-9)]),
        ] as [(HeaderFields, HeaderFields)]
    )
    func merging(caller: HeaderFields, expected: HeaderFields) throws {
        let candidates = [try stored(["ETag": "\"a\"", "Last-Modified": date(-9)])]
        #expect(Precondition.mergedConditionalFields(caller: caller, candidates: candidates) == expected)
    }

    @Test("RFC 9111 §4.3.2: without a stored response to compare, the caller's conditions are forwarded unchanged")
    func mergingWithoutValidator() throws {
        let tagged: HeaderFields = ["If-None-Match": "\"x\"", "If-Modified-Since": date(-1)]
        let dated = [try stored(["Last-Modified": date(-9)])]
        #expect(Precondition.mergedConditionalFields(caller: tagged, candidates: dated) == tagged)
        let sinceOnly: HeaderFields = ["If-Modified-Since": date(-1)]
        #expect(Precondition.mergedConditionalFields(caller: sinceOnly, candidates: [try stored([:])]) == sinceOnly)
        #expect(
            Precondition.mergedConditionalFields(caller: sinceOnly, candidates: dated)
                == ["If-Modified-Since": date(-9)]
        )
    }

    @Test(
        "RFC 9111 §4.3.2: what a 304 means to a caller with tags of its own",
        arguments: [
            ("\"a\"", ["ETag": "\"a\""], .notModified(candidate: 0)),
            ("\"x\", \"b\"", ["ETag": "\"b\""], .notModified(candidate: 1)),
            ("\"x\"", ["ETag": "\"b\""], .full(candidate: 1)),
            ("\"x\"", ["ETag": "\"x\""], .relay), ("W/\"x\"", ["ETag": "\"x\""], .relay),
            ("\"x\"", ["ETag": "\"y\""], .resend), ("*", ["ETag": "\"y\""], .relay),
            ("*", ["ETag": "\"a\""], .notModified(candidate: 0)), ("*", [:], .relay),
            ("\"x\"", [:], .resend), ("\"a\", \"b\", \"x\"", [:], .relay), ("\"a\"", [:], .resend),
        ] as [(String, HeaderFields, Precondition.ValidationAnswer)]
    )
    func answers(tags: String, fields: HeaderFields, expected: Precondition.ValidationAnswer) throws {
        let answer = Precondition.answer(
            to: ResponseHead(status: .notModified, fields: fields),
            request: RequestHead(target: try target(), fields: ["If-None-Match": tags]),
            candidates: [try stored(["ETag": "\"a\""]), try stored(["ETag": "\"b\""])],
            now: .noon.plus(9)
        )
        #expect(answer == expected)
    }

    @Test(
        "RFC 9111 §4.3.2: a 304 for one stored response",
        arguments: [
            (["If-None-Match": "\"a\""], ["ETag": "\"a\""], [:], .notModified(candidate: 0)),
            (["If-None-Match": "W/\"a\""], ["ETag": "\"a\""], [:], .notModified(candidate: 0)),
            (["If-None-Match": "\"x\""], ["Last-Modified": date(-9)], [:], .relay),
            (["If-Modified-Since": date(-9)], ["Last-Modified": date(-9)], [:], .notModified(candidate: 0)),
            (["If-Modified-Since": date(-10)], ["Last-Modified": date(-9)], [:], .full(candidate: 0)),
            (["If-Modified-Since": date(-1)], ["ETag": "\"a\""], ["ETag": "\"b\""], .resend),
            (["If-Modified-Since": date(-1)], ["X": "1"], ["ETag": "\"b\""], .relay),
            ([:], ["ETag": "\"a\""], ["ETag": "\"a\""], .full(candidate: 0)),
            (["If-Match": "\"a\""], ["ETag": "\"a\""], ["ETag": "\"a\""], .relay),
        ] as [(HeaderFields, HeaderFields, HeaderFields, Precondition.ValidationAnswer)]
    )
    func answersForOne(
        request: HeaderFields,
        storedFields: HeaderFields,
        fields: HeaderFields,
        expected: Precondition.ValidationAnswer
    ) throws {
        let answer = Precondition.answer(
            to: ResponseHead(status: .notModified, fields: fields),
            request: RequestHead(target: try target(), fields: request),
            candidates: [try stored(storedFields)],
            now: .noon.plus(9)
        )
        #expect(answer == expected)
    }

    @Test("Random conditions never trap, and no tag of either side is lost", arguments: propertySeeds)
    func arbitrary(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let own = ["\"a\"", "W/\"b\""]
        let candidates = try own.map { try stored(["ETag": $0, "Last-Modified": date(-9)]) }
        for _ in 0..<1000 {
            let value = source.text(from: ["\"a\"", "W/\"b\"", "\"c\"", ", ", ", ", "*", " "], upTo: 6)
            let caller: HeaderFields = [
                "If-None-Match": value, "If-Modified-Since": source.text(from: [date(-9), "Sun"], upTo: 2),
            ]
            let merged = Precondition.mergedConditionalFields(caller: caller, candidates: candidates)
            let sent = try #require(merged[.ifNoneMatch].flatMap { EntityTag.list($0) })
            switch EntityTag.list(value) {
            case .any: #expect(sent == .any)
            case .tags(let tags):
                #expect(
                    sent
                        == .tags(
                            tags.reduce(into: own.compactMap { EntityTag($0) }) { known, tag in
                                if !known.contains(where: { $0.weakMatches(tag) }) { known.append(tag) }
                            }
                        )
                )
            case nil: #expect(sent == .tags(own.compactMap { EntityTag($0) }))
            }
            let tag = source.text(from: ["\"a\"", "\"c\"", "W/"], upTo: 2)
            let answer = Precondition.answer(
                to: ResponseHead(status: .notModified, fields: ["ETag": tag]),
                request: RequestHead(target: try target(), fields: caller),
                candidates: candidates,
                now: .noon
            )
            if case .notModified(let index) = answer { #expect(candidates.indices.contains(index)) }
        }
    }
}
