// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("MultipartForm", .timeLimit(.minutes(20)))
struct MultipartFormTests {
    private func encoded(_ form: MultipartForm, seed: UInt64 = 1) throws -> HttpBody.Encoded {
        var generator = SeededGenerator(seed: seed)
        return try form.encoded(using: &generator)
    }

    /// Reads the content as an attempt does.
    private func bytes(_ encoded: HttpBody.Encoded) async throws -> [UInt8] {
        switch encoded.content.form {
        case .bytes(let bytes): return bytes.array
        case .factory(_, let make): return try await ResponseBody(try await make()).collect().array
        default: throw StrictMultipart.Malformed("another form of content")
        }
    }

    private func parts(_ encoded: HttpBody.Encoded) async throws -> [StrictMultipart.Part] {
        try StrictMultipart(try await bytes(encoded), contentType: encoded.contentType).parts
    }

    @Test("RFC 7578 §4: the lines are as in the standard, with a line end before the closing boundary")
    func lines() async throws {
        let form: MultipartForm = [
            .field("a", value: "x"), .data("f", bytes: Data("y".utf8), fileName: "f.txt", contentType: "text/plain"),
        ]
        let encoded = try encoded(form)
        let boundary = try #require(encoded.contentType?.components(separatedBy: "boundary=").last)
        let text = """
            --B
            Content-Disposition: form-data; name="a"

            x
            --B
            Content-Disposition: form-data; name="f"; filename="f.txt"
            Content-Type: text/plain

            y
            --B--

            """
        let wanted = text.replacingOccurrences(of: "\n", with: "\r\n").replacingOccurrences(of: "B", with: boundary)
        #expect(String(decoding: try await bytes(encoded), as: UTF8.self) == wanted)
        #expect(boundary.count == 41)
    }

    @Test("WHATWG HTML §4.10.21.8: quotes and line ends in names are escaped, the rest is UTF-8")
    func names() async throws {
        let form: MultipartForm = [
            .data("a\"b\r\nc%22", bytes: Data(), fileName: "naïve 日本 \"x\"\n.txt"), .field("é;=\\", value: "\r\n--x"),
        ]
        let parts = try await parts(try encoded(form))
        #expect(parts.map(\.name) == ["a%22b%0D%0Ac%22", "é;=\\"])
        #expect(parts.map(\.fileName) == ["naïve 日本 %22x%22%0A.txt", nil])
        #expect(parts.map(\.contentType) == ["application/octet-stream", nil])
        #expect(parts[1].content == Array("\r\n--x".utf8))
    }

    @Test("A content type that would begin a new line is refused", arguments: ["a/b\r\nX: y", "a/b\n", "ä/b"])
    func contentTypes(type: String) {
        let error = #expect(throws: ServiceError.self) { try encoded([.data("a", bytes: Data(), contentType: type)]) }
        #expect(error?.code == .badRequest)
    }

    @Test("Fields take whatever query arguments take: arrays as several fields, dates, nothing for nil")
    func fields() async throws {
        let form: MultipartForm = [
            .field("n", value: 1), .field("l", value: ["a", "b"]), .field("nil", value: nil),
            .field("d", value: Date(timeIntervalSince1970: 1)),
            .field("b", value: true), .field("f", value: QueryArgument.flag),
        ]
        let parts = try await parts(try encoded(form))
        #expect(parts.map(\.name) == ["n", "l", "l", "d", "b", "f"])
        #expect(parts.map { String(decoding: $0.content, as: UTF8.self) } == ["1", "a", "b", "1000", "true", ""])
    }

    @Test("A form without parts is only its closing line")
    func empty() async throws {
        #expect(try await parts(try encoded([])).isEmpty)
    }

    @Test("The boundary differs for each call, and is the same for the same generator")
    func boundaries() throws {
        #expect(try encoded([], seed: 1).contentType == encoded([], seed: 1).contentType)
        #expect(try encoded([], seed: 1).contentType != encoded([], seed: 2).contentType)
        let body = HttpBody.multipart([])
        #expect(try body.encode().contentType != body.encode().contentType)
    }

    @Test("The length is known if all lengths are, and is correct")
    func lengths() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a", repeatElement(7, count: 300_000))
        let data = Data(repeating: 1, count: 20_000)
        let known = try encoded([
            .file("f", at: file), .data("d", bytes: data), .stream("s", length: 3) { Chunks(["abc"]) },
        ])
        guard case .factory(let length?, _) = known.content.form else { throw StrictMultipart.Malformed("no length") }
        #expect(try await bytes(known).count == length)
        let open = try encoded([.stream("s") { Chunks(["abc", "def"]) }])
        guard case .factory(nil, _) = open.content.form else { throw StrictMultipart.Malformed("a length") }
        #expect(try await parts(open).first?.content == Array("abcdef".utf8))
        let huge = try encoded([
            .stream("s", length: .max) { Chunks([String]()) }, .stream("t", length: .max) { Chunks([String]()) },
        ])
        guard case .factory(nil, _) = huge.content.form else { throw StrictMultipart.Malformed("a length") }
    }

    @Test("A stream that is longer or shorter than announced is refused", arguments: [2, 4])
    func wrongLength(length: Int) async throws {
        let form = try encoded([.stream("s", length: length) { Chunks(["abc"]) }])
        let error = await #expect(throws: ServiceError.self) { try await bytes(form) }
        #expect(error?.code == .badRequest)
    }

    @Test(
        "A strict parser (RFC 2046 §5.1.1) reads any form back, twice",
        arguments: [UInt64.random(in: 0...UInt64.max)]
    )
    func roundTrip(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let folder = try TemporaryFolder()
        for round in 0..<25 {
            var form = MultipartForm()
            var wanted: [StrictMultipart.Part] = []
            for index in 0..<Int.random(in: 0...6, using: &generator) {
                let type = ["text/plain", "image/png"].randomElement(using: &generator)
                let size = Int.random(in: 0...3, using: &generator) == 0 ? 40_000 : 60
                let content = bytes(upTo: size, &generator)
                let name = "name \(index)"
                var part = StrictMultipart.Part(name: name, fileName: "\(index)", contentType: type, content: content)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0:
                    let text = String(decoding: content, as: UTF8.self)
                    form.parts.append(.field(name, value: text))
                    part = StrictMultipart.Part(name: name, content: Array(text.utf8))
                case 1:
                    form.parts.append(.data(name, bytes: Data(content), fileName: "\(index)", contentType: type ?? ""))
                case 2:
                    let file = try folder.file("\(round)-\(index)", content)
                    form.parts.append(.file(name, at: file, contentType: type ?? ""))
                    part.fileName = "\(round)-\(index)"
                default:
                    let chunks = stride(from: 0, to: content.count, by: 1_000).map { start in
                        Array(content[start..<min(start + 1_000, content.count)])
                    }
                    let length = Bool.random(using: &generator) ? content.count : nil
                    form.parts.append(
                        .stream(name, length: length, fileName: "\(index)", contentType: type ?? "") { Chunks(chunks) }
                    )
                }
                wanted.append(part)
            }
            let encoded = try form.encoded(using: &generator)
            #expect(try await parts(encoded) == wanted, "seed \(seed)")
            #expect(try await parts(encoded) == wanted, "seed \(seed), the second time")
        }
    }

    /// Bytes that look like the lines of a form now and then.
    private func bytes(upTo size: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        let lines = ["\r\n", "--", "--holdfast-", "\r\n--\r\n", "Content-Disposition: form-data", "\""]
        var bytes: [UInt8] = []
        let count = Int.random(in: 0...size, using: &generator)
        while bytes.count < count {
            if Int.random(in: 0..<8, using: &generator) == 0 {
                bytes += Array((lines.randomElement(using: &generator) ?? "").utf8)
            }
            let number = generator.next()
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (shift * 8))) }
        }
        return Array(bytes.prefix(count))
    }
}
