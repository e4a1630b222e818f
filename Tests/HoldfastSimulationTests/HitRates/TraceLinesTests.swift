// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Text traces")
struct TraceLinesTests {
    /// Reads a text in pieces of so many bytes.
    private func read(_ text: String, pieces: Int = 1 << 20, limit: Int = .max) throws -> RequestTrace {
        var trace = RequestTrace()
        var lines = TraceLines(path: "t.txt")
        var rest = Array(text.utf8)[...]
        while true {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            try lines.append(piece, isLast: piece.isEmpty, to: &trace, limit: limit)
            if piece.isEmpty { return trace }
        }
    }

    @Test(
        "Keys and sizes are separated by tabs, spaces or commas, however the input is split",
        arguments: [
            "/a 10\n/b 20\n/a 10\n", "/a\t10\n/b\t20\n/a\t10", "/a,10\n/b,20\n/a,10\r\n", "/a,  10\n/b, 20\n\n/a 10\n",
            "key,size\n/a,10\n/b,20\n/a,10\n", "# url bytes\n  /a 10  \n\n/b 20 \n/a   10\n",
            "\"/a\",10\n\"/b\",20\n\"/a\",10\n",
        ],
        [1, 3, 1_000]
    )
    func forms(_ text: String, _ pieces: Int) throws {
        let trace = try read(text, pieces: pieces)
        #expect(trace.requests.map(\.key) == [0, 1, 0])
        #expect(trace.requests.map(\.size) == [10, 20, 10])
        #expect(!trace.hasLives)
        #expect(try read(text, pieces: pieces, limit: 2).requests.count == 2)
    }

    @Test("A byte order mark is no part of the first key", arguments: [1, 3, 1_000])
    func byteOrderMark(_ pieces: Int) throws {
        let trace = try read("\u{FEFF}/a 10\n/b 20\n/a 10\n", pieces: pieces)
        #expect(trace.requests.map(\.key) == [0, 1, 0])
    }

    @Test("A key may have commas if spaces separate, and spaces if tabs do")
    func keysWithSeparators() throws {
        #expect(try read("/a,1 10\n/a,2 10\n").keyCount == 2)
        #expect(try read("/a 1\t10\n/a 2\t10\n").keyCount == 2)
    }

    @Test("Times and lifetimes are seconds, and a lifetime counts from its time")
    func times() throws {
        let trace = try read("a 1 0.5 2\na 1 2.4999 1.25\na 1 3\na 1 99999999999999999999 1\n")
        #expect(trace.times.instants.map(\.milliseconds) == [500, 2_499, 3_000, .max])
        #expect(trace.times.freshUntil.map(\.milliseconds) == [2_500, 3_749, .max, .max])
    }

    @Test("A size beyond 32 bits becomes the largest that fits")
    func largeSizes() throws {
        let trace = try read("a 4294967295\nb 4294967296\nc 99999999999999999999999\n")
        #expect(trace.requests.map(\.size) == [.max, .max, .max])
    }

    @Test(
        "A line that is not a request is named",
        arguments: [
            ("a 1\nb\n", 2), ("a 1\n\nb x\n", 3), ("key size\na 1\nb -1\n", 3), ("a 1 noon\n", 1), ("a 1 1 x\n", 1),
            ("a 1 1.\n", 1), ("a 1 1.5.2\n", 1), ("key size\nkey size\n", 2),
        ]
    )
    func malformed(_ text: String, _ line: Int) throws {
        let error = try #require(throws: TraceError.self) { try read(text, pieces: 2) }
        #expect(error.code == .malformed)
        #expect(error.message.contains("t.txt, line \(line) "), "\(error)")
    }

    @Test("A line longer than 64 KiB is not text, and is not buffered without end")
    func longLine() throws {
        let text = String(repeating: "a", count: 1 << 17)
        for pieces in [1_000, 1 << 20] {
            let error = try #require(throws: TraceError.self) { try read(text, pieces: pieces) }
            #expect(error.code == .malformed)
        }
        var lines = TraceLines(path: "t.txt")
        var trace = RequestTrace()
        var gathered = 0
        #expect(throws: TraceError.self) {
            while gathered < text.utf8.count {
                try lines.append(Array(text.utf8.prefix(1_000)), isLast: false, to: &trace, limit: .max)
                gathered += 1_000
            }
        }
        #expect(gathered <= 1 << 16)
        #expect(try read(String(repeating: "a", count: 60_000) + " 5\n", pieces: 1_000).requests.count == 1)
    }
}
