// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastCommand
import Testing

@testable import Quickstart

@Suite("The command line", .timeLimit(.minutes(20)))
struct ArgumentsTests {
    @Test("Without arguments the defaults apply")
    func defaults() throws {
        let arguments = try Arguments(parsing: [])
        #expect(arguments.calls == 4_000)
        #expect(arguments.resources == 300)
        #expect(arguments.concurrency == 16)
        #expect(arguments.seed == 9_111)
        #expect(arguments.failShare == 0.08)
        #expect(arguments.directory == nil)
        #expect(arguments.urls.isEmpty)
        #expect(!arguments.isJSON && !arguments.wantsHelp)
    }

    @Test(
        "A given value replaces a default, in both spellings",
        arguments: [
            ["--calls", "7", "--resources", "3", "--concurrency", "2", "--seed", "5", "--fail-share", "0.5"],
            ["--calls=7", "--resources=3", "--concurrency=2", "--seed=5", "--fail-share=0.5"],
            ["--calls=9", "--calls=7", "--quick", "--resources=3", "--concurrency=2", "--seed=5", "--fail-share=.5"],
        ]
    )
    func given(_ words: [String]) throws {
        let arguments = try Arguments(parsing: words)
        #expect(arguments.calls == 7)
        #expect(arguments.resources == 3)
        #expect(arguments.concurrency == 2)
        #expect(arguments.seed == 5)
        #expect(arguments.failShare == 0.5)
    }

    @Test("--quick means fewer calls, and an explicit value overrides it")
    func quick() throws {
        let quick = try Arguments(parsing: ["--quick"])
        #expect(quick.calls == 1_000)
        #expect(quick.resources == 80)
        #expect(try Arguments(parsing: ["--calls", "5", "--quick"]).calls == 5)
        #expect(try Arguments(parsing: ["--quick", "http://a.test/"]).calls == 60)
    }

    @Test("URLs are operands, wherever they are, and have their own default number of calls")
    func urls() throws {
        let arguments = try Arguments(parsing: ["http://a.test/x", "--json", "HTTPS://b.test:8080/y?z=1"])
        #expect(arguments.urls.map(\.absoluteString) == ["http://a.test/x", "HTTPS://b.test:8080/y?z=1"])
        #expect(arguments.calls == 200)
        #expect(arguments.isJSON)
    }

    @Test("Values at the limits are accepted")
    func ends() throws {
        #expect(try Arguments(parsing: ["--seed", "18446744073709551615"]).seed == .max)
        #expect(try Arguments(parsing: ["--seed", "0"]).seed == 0)
        #expect(try Arguments(parsing: ["--calls", "10000000"]).calls == 10_000_000)
        #expect(try Arguments(parsing: ["--fail-share", "0"]).failShare == 0)
        #expect(try Arguments(parsing: ["--fail-share", "0.9"]).failShare == 0.9)
        #expect(try Arguments(parsing: ["--directory", "-odd"]).directory == "-odd")
    }

    @Test(
        "An invalid argument ends with status 64 and one line that names it and what is allowed",
        arguments: [
            (["--bogus"], "--bogus", "unknown option"),
            (["-x"], "-x", "unknown option"),
            (["--calls"], "--calls", "1 to 10000000"),
            (["--calls", "--json"], "--calls", "1 to 10000000"),
            (["--calls="], "--calls", "1 to 10000000"),
            (["--calls", "-3"], "--calls", "1 to 10000000"),
            (["--calls", "0"], "--calls", "1 to 10000000"),
            (["--calls", "99999999999999999999999"], "--calls", "1 to 10000000"),
            (["--calls", "many"], "“many”", "1 to 10000000"),
            (["--resources", "1.5"], "--resources", "1 to 100000"),
            (["--concurrency", "2000"], "--concurrency", "1 to 1024"),
            (["--seed", "-1"], "--seed", "0 to 18446744073709551615"),
            (["--fail-share", "nan"], "--fail-share", "0 to 0.9"),
            (["--fail-share", "-0.1"], "--fail-share", "0 to 0.9"),
            (["--fail-share", "1"], "--fail-share", "0 to 0.9"),
            (["--directory"], "--directory", "path of a directory"),
            (["--directory="], "--directory", "path of a directory"),
            (["--json=yes"], "--json", "no value"),
            (["--help=me"], "--help", "no value"),
            (["ftp://a.test/"], "ftp://a.test/", "http://"),
            (["a.test/page"], "a.test/page", "http://"),
            (["http://"], "http://", "http://"),
            ([""], "“”", "http://"),
            (["--", "--json"], "“--json”", "http://"),
            (["--fail-share", "0.1", "http://a.test/"], "--fail-share", "built-in origin"),
            (["--resources", "5", "http://a.test/"], "--resources", "built-in origin"),
        ]
    )
    func wrong(_ words: [String], _ name: String, _ allowed: String) throws {
        let failure = try #require(throws: CommandFailure.self) { try Arguments(parsing: words) }
        #expect(failure.exitStatus == 64)
        #expect(failure.description.contains(name))
        #expect(failure.description.contains(allowed))
        #expect(!failure.description.contains("\n"))
    }

    @Test("Help is printed even with URLs, which are not requested")
    func help() throws {
        #expect(try Arguments(parsing: ["--help", "http://a.test/"]).wantsHelp)
        #expect(try Arguments(parsing: ["-h"]).wantsHelp)
    }

    @Test("A failure is one line, whatever the underlying error prints")
    func oneLine() {
        let failure = CommandFailure.unreachable("http://a.test/", reason: "first\nsecond\r\nthird")
        #expect(failure.description == "http://a.test/ cannot be reached: first second third")
    }
}
