// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct MultipartReaderTests {
    private struct Part: Equatable {
        var range: ContentRange
        var contentType: String?
        var bytes: [UInt8]
    }

    private let fields: HeaderFields = ["Content-Type": "multipart/byteranges; boundary=x"]

    /// Reads a content cut into chunks, and joins the bytes of each part.
    private func read(_ chunks: [[UInt8]], fields: HeaderFields) throws -> (parts: [Part], reader: MultipartReader) {
        var reader = try #require(MultipartReader(fields))
        var parts: [Part] = []
        for event in chunks.flatMap({ reader.read($0) }) {
            switch event {
            case .part(let range, let contentType):
                parts.append(Part(range: range, contentType: contentType, bytes: []))
            case .bytes(let bytes):
                try #require(!parts.isEmpty)
                parts[parts.count - 1].bytes += bytes
            }
        }
        return (parts, reader)
    }

    @Test("RFC 9110 §14.6: preamble, fields in any case, padding, and what follows the end")
    func reading() throws {
        let text =
            "hello\r\n\r\n--x \r\ncontent-type: a/b\r\nCONTENT-RANGE: bytes 2-4/9\r\n\r\n--x\r\n--x\n"
            + "Content-Range: bytes 0-0/9\n\nz\n--x-- \r\n--x\r\nContent-Range: bytes 0-0/9\r\n\r\n"
        let (parts, reader) = try read([Array(text.utf8)], fields: fields)
        let first = try #require(ContentRange(2..<5, completeLength: 9))
        let second = try #require(ContentRange(0..<1, completeLength: 9))
        #expect(
            parts == [
                Part(range: first, contentType: "a/b", bytes: Array("--x".utf8)),
                Part(range: second, contentType: nil, bytes: Array("z".utf8)),
            ]
        )
        #expect(reader.isFinished && !reader.isInvalid)
    }

    @Test(
        "RFC 2046 §5.1.1: which fields have a boundary",
        arguments: [
            ("multipart/byteranges; boundary=abc", true), ("Multipart/Byteranges;a=b; Boundary=\"a b\"", true),
            ("multipart/byteranges", false), ("multipart/byteranges; boundary=", false),
            ("multipart/byteranges; boundary=\"a \"", false), ("multipart/byteranges; boundary=a b", false),
            ("multipart/mixed; boundary=abc", false), ("multipart/byteranges; boundary=\"é\"", false),
            ("multipart/byteranges; boundary=" + String(repeating: "a", count: 71), false),
        ] as [(String, Bool)]
    )
    func boundaries(value: String, isValid: Bool) {
        #expect((MultipartReader(["Content-Type": value]) != nil) == isValid)
        #expect(MultipartReader(["Content-Type": value, "content-type": value]) == nil)
    }

    @Test(
        "What breaks the rules ends the reading",
        arguments: [
            "--x\r\nContent-Range: bytes 5-4/9\r\n\r\n", "--x\r\n\r\n", "--x\r\nno field\r\n",
            "--x\r\nContent-Range: bytes */9\r\n\r\n",
            "--x\r\nContent-Range: bytes 0-0/9\r\n\r\nab\r\n--x--",
            "--x\r\nContent-Range: bytes 0-0/9\r\n\r\na\r\nb--x--\r\n",
            "--x\r\nContent-Range: bytes 0-0/9\r\n\r\na\r\n--x\r\nContent-Range: bytes 1-1/8\r\n\r\n",
            "--x\r\n" + String(repeating: "a: b\r\n", count: 4000), String(repeating: "a", count: 20_000),
        ]
    )
    func invalid(text: String) throws {
        let (parts, reader) = try read([Array(text.utf8)], fields: fields)
        #expect(reader.isInvalid && !reader.isFinished && parts.count <= 1)
    }

    @Test("The number of parts is bounded")
    func bound() throws {
        let part = "--x\r\nContent-Range: bytes 0-0/9\r\n\r\na\r\n"
        let text = String(repeating: part, count: RangeRequest.maximumRanges + 1) + "--x--"
        let (parts, reader) = try read([Array(text.utf8)], fields: fields)
        #expect(parts.count == RangeRequest.maximumRanges && reader.isInvalid)
    }

    @Test("The bound on framing is the same however it is cut", arguments: [0, 1])
    func framingBound(excess: Int) throws {
        let text = String(repeating: "a", count: MultipartReader.maximumFraming - 1 + excess) + "\n"
        #expect(try read([Array(text.utf8)], fields: fields).reader.isInvalid == (excess > 0))
        #expect(try read(text.utf8.map { [$0] }, fields: fields).reader.isInvalid == (excess > 0))
    }

    @Test("What is framed is read back, however it is cut", arguments: propertySeeds)
    func roundTrip(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let content = (0..<600).map { _ in UInt8.random(in: 0...255, using: &source) }
        for _ in 0..<150 {
            let intervals = (0..<Int.random(in: 1...5, using: &source)).map { _ in
                let low = Int64.random(in: 0..<600, using: &source)
                return low..<Int64.random(in: (low + 1)...600, using: &source)
            }
            let body = MultipartByteRanges(
                intervals: intervals,
                completeLength: 600,
                contentType: "a/b",
                seed: source.next()
            )
            var rest = body.pieces.flatMap { piece in
                switch piece {
                case .literal(let bytes): bytes
                case .stored(let interval): Array(content[Int(interval.lowerBound)..<Int(interval.upperBound)])
                }
            }[...]
            var chunks: [[UInt8]] = []
            while !rest.isEmpty {
                chunks.append(Array(rest.prefix(Int.random(in: 1...90, using: &source))))
                rest = rest.dropFirst(chunks.last?.count ?? 1)
            }
            let (parts, reader) = try read(chunks, fields: ["Content-Type": body.contentType])
            #expect(reader.isFinished && !reader.isInvalid)
            #expect(parts.map(\.range.interval) == intervals)
            for part in parts {
                let interval = try #require(part.range.interval)
                #expect(part.bytes == Array(content[Int(interval.lowerBound)..<Int(interval.upperBound)]))
            }
        }
    }

    @Test("Arbitrary content traps nothing, and cutting it changes nothing", arguments: propertySeeds)
    func arbitrary(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        var found = 0
        for _ in 0..<1500 {
            let text = source.text(
                from: ["--x\r\n", "\r\n--x--", "\r\n", "Content-Range: bytes 0-2/9\r\n\r\n", "a", "\n", "--x", "99"],
                upTo: 12
            )
            let (whole, one) = try read([Array(text.utf8)], fields: fields)
            let (single, other) = try read(text.utf8.map { [$0] }, fields: fields)
            #expect(
                whole == single && one.isInvalid == other.isInvalid && one.isFinished == other.isFinished,
                "\(text)"
            )
            found += whole.count
        }
        #expect(found > 0)
    }

    @Test("RFC 9110 §15.3.7.2: a part of several is stored as one alone is")
    func storedPart() throws {
        let head = ResponseHead(
            status: .partialContent,
            fields: ["Content-Type": "multipart/byteranges; boundary=x", "ETag": "\"a\"", "Content-Length": "500"]
        )
        let request = RequestHead(target: try target(), fields: ["Range": "bytes=0-1,200-"])
        let range = try #require(ContentRange(0..<2, completeLength: 300))
        func part(_ head: ResponseHead) -> ReceivedPart? {
            ReceivedPart(range, contentType: "a/b", of: head, to: request, receivedAt: .noon, contentDecoded: false)
        }
        let stored = try #require(part(head))
        #expect(stored.storedHead.fields == ["Content-Type": "a/b", "ETag": "\"a\"", "Content-Length": "300"])
        #expect(stored.interval == 0..<2 && stored.validator != nil)
        #expect(part(ResponseHead(status: .partialContent, fields: ["Content-Type": "a/b"])) == nil)
    }
}
