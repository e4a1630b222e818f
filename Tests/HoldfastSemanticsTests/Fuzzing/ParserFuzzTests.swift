// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import Testing

/// One parser under fuzz: its name, good inputs to start from, and a body that must not trap whatever comes.
///
/// The body records an issue where a property fails, mostly that reading what was written gives the same value again.
struct FuzzedParser: Sendable, CustomTestStringConvertible {
    let name: String
    let corpus: [String]
    let body: @Sendable (String) -> Void

    init(_ name: String, _ corpus: [String], _ body: @escaping @Sendable (String) -> Void) {
        self.name = name
        self.corpus = corpus
        self.body = body
    }

    var testDescription: String { name }

    /// The entry a libFuzzer target would call.
    func fuzz(_ bytes: [UInt8]) {
        body(String(decoding: bytes, as: UTF8.self))
    }
}

/// Every parser of network bytes in the module, fed with mutated inputs (issue "RFC 9111 and its family").
///
/// `HOLDFAST_FUZZ_SECONDS` sets how long each parser is fed, in place of a fixed count; `HOLDFAST_FUZZ_SEED` sets the
/// seed, which a failure names. That malformed input costs linear time is by construction (each parser advances one
/// position and never goes back) and is not tested here, since that would need a clock.
@Suite struct ParserFuzzTests {
    static let parsers: [FuzzedParser] = structured + caching + messages + keysAndRanges

    /// Overflows 64 bits.
    private static let longNumber = String(repeating: "9", count: 24)

    private static let structured: [FuzzedParser] = [
        FuzzedParser(
            "Structured Item",
            [
                #"a;b="c\"";d=1.5"#, ":aGk=:;x", "@-17", #"%"f%c3%bc""#, "-999.5;a=?0", longNumber, "@-" + longNumber,
                "0." + longNumber,
            ]
        ) {
            input in
            guard let item = try? StructuredItem(parsing: input) else { return }
            let written = try? item.serialized()
            #expect(written.flatMap { try? StructuredItem(parsing: $0) } == item, "\(input.debugDescription)")
        },
        FuzzedParser("Structured List", [#"a, "b";c, (1 2;x);y, ()"#, "1, 2.5, ?1, @3, :AA==:"]) { input in
            guard let list = try? StructuredList(parsing: input), !list.members.isEmpty else { return }
            let written = (try? list.serialized()) ?? nil
            #expect(written.flatMap { try? StructuredList(parsing: $0) } == list, "\(input.debugDescription)")
        },
        FuzzedParser("Structured Dictionary", [#"a=1, b;x="y", c=(1 2);z, a=2"#, "a,b,c,d,e,f,g,h,i,j,k,a=?0"]) {
            input in
            guard let dictionary = try? StructuredDictionary(parsing: input), !dictionary.isEmpty else { return }
            #expect(Set(dictionary.keys).count == dictionary.count, "\(input.debugDescription)")
            let written = (try? dictionary.serialized()) ?? nil
            #expect(
                written.flatMap { try? StructuredDictionary(parsing: $0) } == dictionary,
                "\(input.debugDescription)"
            )
        },
    ]

    private static let caching: [FuzzedParser] = [
        FuzzedParser("Cache-Status", [#"a;hit;ttl=3, "b c";fwd=stale;fwd-status=304;stored;key="k";detail=d"#]) {
            input in
            let entry = CacheStatusEntry(cache: input, isHit: true, key: input, detail: input)
            let appended = CacheStatus(parsing: CacheStatus.appending(entry, to: input))
            let before = CacheStatus(parsing: input)
            #expect(appended?.entries.count == (before?.entries.count ?? 0) + 1, "\(input.debugDescription)")
            guard let before else { return }
            #expect(CacheStatus(parsing: before.description) == before, "\(input.debugDescription)")
        },
        FuzzedParser(
            "Cache-Control",
            [
                #"max-age=60, no-cache="a, b", private, s-maxage="9", x="a\"b""#, "max-stale, min-fresh=3, no-store x",
                "max-age=" + longNumber,
            ]
        ) { input in
            let field = CacheControl(parsing: input)
            #expect(CacheControl(parsing: field.description) == field, "\(input.debugDescription)")
            let seconds = [field.maxAge, field.sMaxAge, field.minFresh, field.staleIfError, field.staleWhileRevalidate]
            #expect(
                seconds.allSatisfy { ($0 ?? 0) >= 0 && ($0 ?? 0) <= CacheControl.maximumDeltaSeconds },
                "\(input.debugDescription)"
            )
            _ = (field.maxStale, field.noCache, field.private, CacheControl(request: ["Pragma": input]))
        },
        FuzzedParser("Targeted Cache-Control", [#"max-age=60, no-cache="a", no-store, x=tok;p=1"#]) { input in
            let fields: HeaderFields = ["CDN-Cache-Control": input]
            guard let field = TargetedCacheControl(fields, targets: [.cdnCacheControl])?.cacheControl else { return }
            #expect(CacheControl(parsing: field.description) == field, "\(input.debugDescription)")
        },
        FuzzedParser("Cache-Groups", [#""a", "b c";x, "d\"e""#]) { input in
            let names = CacheGroups(["Cache-Groups": input] as HeaderFields).names
            #expect(names.count <= CacheGroups.maximumCount && Set(names).count == names.count)
        },
        FuzzedParser("Clear-Site-Data", [#""cache", "cookies", "*""#]) { input in
            let types = ClearSiteData(["Clear-Site-Data": input] as HeaderFields).types
            #expect(types.count <= input.utf8.count)
        },
        FuzzedParser("Vary", ["Accept-Encoding, X-Custom", "gzip;q=0.5, *;q=0", "de-DE, en;q=0.8", "*"]) { input in
            _ = NominatedFields(vary: ["Vary": input], request: ["Accept": input, "Cookie": input], secret: [1])
            let request: HeaderFields = ["Accept": input, "Accept-Encoding": input, "Accept-Language": input]
            let vary: HeaderFields = ["Vary": "Accept, Accept-Encoding, Accept-Language"]
            #expect(NominatedFields(vary: vary, request: request, secret: []) != nil)
        },
    ]

    private static let messages: [FuzzedParser] = [
        FuzzedParser(
            "HTTP-date",
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        ) { input in
            guard let date = HTTPDate(input, receivedAt: .noon) else { return }
            #expect(HTTPDate(date.description, receivedAt: .noon) == date, "\(input.debugDescription)")
        },
        FuzzedParser("Entity tags", [#""a", W/"b\c", """#, "*", #"W/"""#]) { input in
            if let tag = EntityTag(input) { #expect(EntityTag(tag.description) == tag, "\(input.debugDescription)") }
            guard case .tags(let tags) = EntityTag.list(input) else { return }
            let written = tags.map(\.description).joined(separator: ", ")
            #expect(EntityTag.list(written) == .tags(tags), "\(input.debugDescription)")
        },
        FuzzedParser("Field scanner", [#"a="b,c", d;e=f, "g\"h""#, "a, b ,, c"]) { input in
            let members = FieldScanner.members(of: input)
            #expect(
                FieldScanner.members(of: members.joined(separator: ", ")) == members,
                "\(input.debugDescription)"
            )
            #expect((FieldScanner.number(input.utf8, limit: 100) ?? 0) <= 100)
        },
        FuzzedParser(
            "Target URI",
            [
                "http://u@EXAMPLE.com:80/a/../b%2e%41?x=%zz#f", "https://[::1]:8443/?", "//h/é", "../a;b?c", "http://h",
                "http://h:" + longNumber,
            ]
        ) { input in
            if let target = try? TargetURI(input) {
                #expect((try? TargetURI(target.canonical)) == target, "\(input.debugDescription)")
                _ = (target.host, target.path, target.query, target.origin, target.port, target.scheme)
            }
            _ = try? TargetURI(mapping: input)
            let base = try? TargetURI("https://example.com/a/b?c")
            guard let resolved = base?.resolving(input) else { return }
            #expect((try? TargetURI(resolved.canonical)) == resolved, "\(input.debugDescription)")
        },
        FuzzedParser(
            "Numbers and delays",
            ["120", "0", "Sun, 06 Nov 1994 08:49:37 GMT", "5, 7", longNumber, "-" + longNumber]
        ) { input in
            let fields: HeaderFields = [
                "Age": input, "Content-Length": input, "Retry-After": input, "Date": input, "Expires": input,
                "Last-Modified": input, "ETag": input, "Cache-Control": input,
            ]
            let head = ResponseHead(status: 200, fields: fields)
            #expect((head.age ?? 0) >= 0 && (head.contentLength ?? 0) >= 0, "\(input.debugDescription)")
            #expect((RetryAfter.delay(fields, receivedAt: .noon) ?? .zero) >= .zero, "\(input.debugDescription)")
        },
    ]

    private static let keysAndRanges: [FuzzedParser] = [
        FuzzedParser(
            "Ranges",
            ["bytes=0-4, 7-, -3", "bytes=5-1", "bytes 0-4/10", "bytes */7", "bytes=" + longNumber + "-"]
        ) {
            input in
            if let range = ContentRange(parsing: input) {
                #expect(ContentRange(parsing: range.description) == range, "\(input.debugDescription)")
            }
            guard let request = RangeRequest(parsing: input) else { return }
            #expect(RangeRequest(parsing: request.description) == request, "\(input.debugDescription)")
            for length in [Int64(0), 1, 10, 1_000, .max] {
                let intervals: [Range<Int64>] =
                    switch request.answer(completeLength: length) {
                    case .part(let interval): [interval]
                    case .parts(let intervals): intervals
                    case .whole, .unsatisfiable: []
                    }
                let isWithin = intervals.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length }
                #expect(isWithin, "\(input.debugDescription)")
            }
        },
        FuzzedParser("Conditions", [#""a", W/"b""#, "Sun, 06 Nov 1994 08:49:37 GMT", "*", "bytes=0-1"]) { input in
            guard let target = try? TargetURI("https://example.com/") else { return }
            let names: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .ifRange, .range, .ifMatch]
            var request = RequestHead(target: target)
            for name in names { request.fields.append(name, input) }
            let head = ResponseHead(
                status: 200,
                fields: ["ETag": input, "Last-Modified": input, "Content-Range": input]
            )
            let stored = StoredResponse(target: target, head: head, requestTime: .noon, responseTime: .noon)
            _ = Precondition.evaluate(request: request, stored: stored, now: .noon)
            _ = Precondition.mergedConditionalFields(caller: request.fields, candidates: [stored])
            _ = PartialContent.answer(request: request, stored: stored, completeLength: 10)
            let part = ResponseHead(status: 206, fields: head.fields)
            let received = ReceivedPart(part, to: request, receivedAt: .noon, contentDecoded: false)
            #expect(received.map { !$0.interval.isEmpty } ?? true, "\(input.debugDescription)")
        },
        FuzzedParser("No-Vary-Search", [#"params=("a" "b"), except=("c"), key-order"#, "params", "?a=%41&b+c=d"]) {
            input in
            let variance = NoVarySearch(fieldValue: input)
            guard let target = try? TargetURI("https://example.com/?" + input) else { return }
            #expect(variance.isEquivalent(target, to: target), "\(input.debugDescription)")
            _ = QueryOptions(sortsNames: true, ignoredNames: ["a*"]).applied(to: target)
        },
        FuzzedParser(
            "Content of a key",
            [#"{"b":[1,2.5e3,null],"a":"\u00e9"}"#, "[[[[", "text/html; Charset=\"utf-8\""]
        ) { input in
            guard let bytes = CanonicalJSON.bytes(of: Array(input.utf8), leavingOutNull: []) else { return }
            #expect(CanonicalJSON.bytes(of: bytes, leavingOutNull: []) ?? bytes == bytes, "\(input.debugDescription)")
            let fields: HeaderFields = ["Content-Type": input]
            _ = RequestContent(bytes, fields: fields, normalizer: .graphQL)
        },
        FuzzedParser("Framed bytes", ["\0\0\0\u{4}hnf1\0\0\0\u{1}a\0\0\0\u{1}=", "\u{7f}\u{7f}\u{7f}\u{7f}"]) { input in
            guard let nominated = NominatedFields(framed: Array(input.utf8)) else { return }
            #expect(NominatedFields(framed: nominated.framed) == nominated, "\(input.debugDescription)")
        },
    ]

    private static let environment = ProcessInfo.processInfo.environment

    /// An argument of the test, so that a failure shows it.
    private static let seeds = [environment["HOLDFAST_FUZZ_SEED"].flatMap { UInt64($0) } ?? 20_261_122]

    @Test("No input traps a parser, and every parser reads what it wrote", arguments: parsers, seeds)
    func fuzz(_ parser: FuzzedParser, seed: UInt64) {
        var mutator = InputMutator(seed: seed, corpus: parser.corpus)
        for input in parser.corpus { parser.body(input) }
        guard let seconds = Self.environment["HOLDFAST_FUZZ_SECONDS"].flatMap({ Int64($0) }) else {
            for _ in 0..<200 { parser.fuzz(mutator.next()) }
            return
        }
        // A trap leaves no other trace of where it happened.
        print("fuzzing \(parser.name) for \(seconds) s with seed \(seed)")
        let end = ContinuousClock.now.advanced(by: .seconds(seconds))
        var count = 0
        while ContinuousClock.now < end {
            for _ in 0..<200 { parser.fuzz(mutator.next()) }
            count += 200
        }
        print("fuzzed \(parser.name) with \(count) inputs")
    }
}
