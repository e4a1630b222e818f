// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("Command options")
struct CommandOptionsTests {
    @Test("Values follow as the next word or after an equals sign")
    func values() throws {
        let words = ["--quick", "--json", "--case", "get,put-1KiB", "--subject=raw", "--directory", "/x", "--rounds=3"]
        let options = try CommandOptions(parsing: words, numberOptions: ["rounds"])
        #expect(options.isQuick && options.wantsJSON && !options.wantsHelp)
        #expect(options.cases == ["get", "put-1KiB"])
        #expect(options.subjects == ["raw"])
        #expect(options.directory == "/x")
        #expect(options.numbers == ["rounds": 3])
    }

    @Test("A benchmark's own options may be repeated and keep their order")
    func ownWords() throws {
        let words = ["--trace", "b", "--trace=a", "--quick", "--plot", "x=y"]
        let options = try CommandOptions(parsing: words, wordOptions: ["trace", "plot"])
        #expect(options.words == ["trace": ["b", "a"], "plot": ["x=y"]])
        #expect(throws: CommandOptions.Misuse.self) { try CommandOptions(parsing: ["--trace"], wordOptions: ["trace"]) }
        #expect(throws: CommandOptions.Misuse.self) { try CommandOptions(parsing: ["--trace", "a"], wordOptions: []) }
    }

    @Test("A benchmark's own flags take no value")
    func ownFlags() throws {
        #expect(try CommandOptions(parsing: ["--all"], flagOptions: ["all"]).flags == ["all"])
        #expect(try CommandOptions(parsing: [], flagOptions: ["all"]).flags.isEmpty)
        #expect(throws: CommandOptions.Misuse.self) { try CommandOptions(parsing: ["--all=1"], flagOptions: ["all"]) }
    }

    @Test(
        "Invalid words are refused",
        arguments: [
            ["quick"], ["--fast"], ["--case"], ["--case="], ["--case", "--json"], ["--json=1"], ["--rounds", "-1"],
            ["--rounds", "many"], ["--rounds=9999999999999999999"], ["-h"], ["--"], [""],
        ]
    )
    func misuse(_ words: [String]) {
        #expect(throws: CommandOptions.Misuse.self) {
            try CommandOptions(parsing: words, numberOptions: ["rounds"])
        }
    }

    @Test("A case is named in full or by its part before a hyphen")
    func cases() throws {
        let options = try CommandOptions(parsing: ["--case", "get,put-1KiB"])
        #expect(options.includes(case: "get-16KiB"))
        #expect(options.includes(case: "put-1KiB"))
        #expect(!options.includes(case: "put-16KiB"))
        #expect(!options.includes(case: "getter"))
        #expect(options.includes(case: "put-1KiB@2"))
        #expect(try CommandOptions(parsing: []).includes(case: "anything"))
    }

    @Test("Names that do not exist are refused", arguments: [["--case", "got"], ["--subject", "mysql"]])
    func unknownNames(_ words: [String]) throws {
        let options = try CommandOptions(parsing: words)
        #expect(throws: CommandOptions.Misuse.self) {
            try options.check(cases: ["get-1KiB"], subjects: ["raw"])
        }
    }

    @Test("Names that exist pass", arguments: [["--case", "get"], ["--case=get-1KiB"], ["--subject", "raw"], []])
    func knownNames(_ words: [String]) throws {
        try CommandOptions(parsing: words).check(cases: ["get-1KiB"], subjects: ["raw"])
    }
}
