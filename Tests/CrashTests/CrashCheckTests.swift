// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import CrashChild

/// The check must find what it is there to find, and nothing in a log that keeps the promises.
@Suite("The check of a crashed store's log")
struct CrashCheckTests {
    /// A log, `crash` standing for the kill, and a word of each finding that is expected.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var mayEvict = false
        let log: String
        var findings: [String] = []
    }

    private static let put = "begin 1 put w0k0 v0 1.0.9.ab;done 1 ok"

    static let cases = [
        Case(testDescription: "an acknowledged put is there", log: "\(put);crash;saw w0k0 v0 1.0.9.ab free"),
        Case(testDescription: "an acknowledged put is missing", log: "\(put);crash;saw w0k0 v0", findings: ["missing"]),
        Case(testDescription: "an evicted put is missing", mayEvict: true, log: "\(put);crash;saw w0k0 v0"),
        Case(
            testDescription: "a pinned entry is missing",
            mayEvict: true,
            log: "\(put);begin 2 pin w0k0 v0 true;done 2 ok;crash;saw w0k0 v0",
            findings: ["missing"]
        ),
        Case(
            testDescription: "a pin is lost",
            log: "\(put);begin 2 pin w0k0 v0 true;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["not pinned"]
        ),
        Case(
            testDescription: "a pin in flight",
            log: "\(put);begin 2 pin w0k0 v0 true;crash;saw w0k0 v0 1.0.9.ab free"
        ),
        Case(testDescription: "a put in flight is not there", log: "begin 1 put w0k0 v0 1.0.9.-;crash;saw w0k0 v0"),
        Case(
            testDescription: "a put in flight is there",
            log: "begin 1 put w0k0 v0 1.0.9.-;crash;saw w0k0 v0 1.0.9.- free"
        ),
        Case(
            testDescription: "a put in flight takes the older one with it",
            log: "\(put);begin 2 put w0k0 v0 2.0.9.-;crash;saw w0k0 v0",
            findings: ["missing"]
        ),
        Case(
            testDescription: "a superseded version comes back",
            mayEvict: true,
            log: "\(put);begin 2 put w0k0 v0 2.0.9.-;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows 2.0.9.-"]
        ),
        Case(
            testDescription: "metadata from before the freshening comes back",
            log: "\(put);begin 2 freshen w0k0 v0 1.2.9.-;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows 1.2.9.-"]
        ),
        Case(
            testDescription: "a freshening in flight",
            log: "\(put);begin 2 freshen w0k0 v0 1.2.9.-;crash;saw w0k0 v0 1.2.9.- free"
        ),
        Case(
            testDescription: "an entry is gone at its freshening",
            log: "\(put);begin 2 freshen w0k0 v0 1.2.9.-;done 2 gone",
            findings: ["gone at its freshening"]
        ),
        Case(
            testDescription: "a removed entry comes back",
            mayEvict: true,
            log: "\(put);begin 2 remove w0k0 v0;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows nothing"]
        ),
        Case(
            testDescription: "an invalidated entry comes back",
            mayEvict: true,
            log: "\(put);begin 2 invalidate w0k0;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows nothing"]
        ),
        Case(
            testDescription: "an invalidation in flight",
            log: "\(put);begin 2 invalidate w0k0;crash;saw w0k0 v0"
        ),
        Case(
            testDescription: "purged entries come back",
            log: "\(put);begin 2 purge tag a;done 2 ok;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows nothing"]
        ),
        Case(
            testDescription: "a purge of others takes the entry",
            log: "\(put);begin 2 purge tag c;done 2 ok;crash;saw w0k0 v0",
            findings: ["missing"]
        ),
        Case(
            testDescription: "the old tag no longer counts",
            log: "\(put);begin 2 freshen w0k0 v0 1.2.9.c;done 2 ok;begin 3 purge tag a;done 3 ok;crash;saw w0k0 v0",
            findings: ["missing"]
        ),
        Case(
            testDescription: "a purge beside a put: it stays",
            log: "begin 1 purge all;begin 2 put w0k0 v0 1.0.9.-;done 2 ok;done 1 ok;crash;saw w0k0 v0 1.0.9.- free"
        ),
        Case(
            testDescription: "a purge beside a put: it goes",
            log: "begin 1 put w0k0 v0 1.0.9.-;begin 2 purge prefix w0;done 2 ok;done 1 ok;crash;saw w0k0 v0"
        ),
        Case(
            testDescription: "a purge beside a put refuses it",
            log: "begin 1 put w0k0 v0 1.0.9.-;begin 2 purge all;done 2 ok;done 1 superseded;crash;saw w0k0 v0"
        ),
        Case(
            testDescription: "a put is refused for no reason",
            log: "begin 1 put w0k0 v0 1.0.9.-;done 1 superseded",
            findings: ["superseded"]
        ),
        Case(
            testDescription: "a purge in flight",
            log: "\(put);begin 2 purge variant v0;crash;saw w0k0 v0"
        ),
        Case(
            testDescription: "a put after a purge is missing",
            log: "begin 2 purge all;done 2 ok;\(put);crash;saw w0k0 v0",
            findings: ["missing"]
        ),
        Case(
            testDescription: "what was in doubt is settled once it was seen",
            log: "\(put);begin 2 purge all;crash;saw w0k0 v0;crash;saw w0k0 v0 1.0.9.ab free",
            findings: ["allows nothing"]
        ),
        Case(
            testDescription: "what was in doubt is settled by what follows",
            log:
                "begin 1 put w0k0 v0 1.0.9.-;crash;begin 1 put w0k0 v0 2.0.9.-;done 1 ok;crash;saw w0k0 v0 1.0.9.- free",
            findings: ["allows 2.0.9.-"]
        ),
        Case(testDescription: "an eviction where there is room", log: "evicted", findings: ["too small"]),
        Case(testDescription: "what the child saw", log: "wrong a thing", findings: ["a thing"]),
    ]

    @Test("It reports every planted violation and nothing else", arguments: cases)
    func check(_ item: Case) throws {
        var check = CrashCheck(mayEvict: item.mayEvict)
        for text in item.log.split(separator: ";") {
            if text == "crash" {
                check.crash()
            } else {
                check.read(try #require(CrashLine(text), "\(text)"))
            }
        }
        #expect(check.findings.count == item.findings.count, "\(check.findings)")
        for (found, word) in zip(check.findings, item.findings) { #expect(found.contains(word)) }
    }

    static let lines = [
        "opened", "surveyed", "evicted", "saw k v", "saw k v 1.2.3.ab pinned", "saw k v 1.2.3.- free",
        "begin 1 put k v 9.0.8.-", "begin 1 freshen k v 9.7.8.c", "begin 2 remove k v", "begin 3 invalidate k",
        "begin 4 pin k v true", "begin 4 pin k v false", "begin 5 purge all", "begin 5 purge tag a",
        "begin 5 purge prefix w1", "begin 5 purge variant v0", "begin 6 close", "done 1 ok", "done 1 gone",
        "done 1 no-space", "wrong a b c",
    ]

    @Test("Every line is parsed back as it was written", arguments: lines)
    func line(_ text: String) throws {
        #expect(try #require(CrashLine(text)).description == text)
    }

    @Test(
        "A truncated line is ignored",
        arguments: ["", "begin", "begin 1", "begin 1 put k v", "saw k", "done 1", "sa"]
    )
    func cut(_ text: String) {
        #expect(CrashLine(text) == nil)
    }

    @Test("Every byte of a body depends on key, put number and length")
    func bodies() {
        let identity = CrashIdentity(key: "w0k0", variant: "v0")
        let other = CrashIdentity(key: "w0k0", variant: "v1")
        let body = CrashStamp(put: 1, length: 10_000, tags: []).body(of: identity)
        #expect(body.count == 10_000)
        #expect(areSame(body, CrashStamp(put: 1, length: 10_000, tags: ["a"]).body(of: identity)))
        #expect(!areSame(body, CrashStamp(put: 2, length: 10_000, tags: []).body(of: identity)))
        #expect(!areSame(body, CrashStamp(put: 1, length: 10_000, tags: []).body(of: other)))
        for place in [0, 4_092, 4_093, 9_999] {
            var damaged = body
            damaged[place] ^= 1
            #expect(!areSame(body, damaged))
        }
        #expect(CrashStamp(put: 1, length: 0, tags: []).body(of: identity).isEmpty)
    }
}
