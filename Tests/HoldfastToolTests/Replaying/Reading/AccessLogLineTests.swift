// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("Lines of access logs")
    struct AccessLogLineTests {
        private static func read(_ text: String) -> Result<AccessLogLine, AccessLogLine.Malformation> {
            Result { () throws(AccessLogLine.Malformation) in try AccessLogLine(Array(text.utf8)[...]) }
        }

        @Test("Common format, in the time zone given")
        func common() throws {
            let line = try Self.read(
                #"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?a=1 HTTP/1.0" 200 2326"#
            ).get()
            #expect(line.time == Timestamp(secondsSinceEpoch: 971_211_336))
            #expect(line.method == "GET" && line.target == "/apache_pb.gif?a=1")
            #expect(line.status == .ok && line.bytes == 2326 && line.host == nil)
        }

        @Test("Combined format: escaped quotes, spaces in names and targets, ISO times, hosts, CR at the end")
        func combined() throws {
            let odd = try Self.read(
                #"shop.example:443 2001:db8::1 - j [r] doe [2026-01-31T12:00:01+01:00] "GET /a \"b\" c HTTP/2.0" 200 - "-" "x""#
                    + "\r"
            ).get()
            #expect(odd.host == "shop.example:443" && odd.target == #"/a \"b\" c"# && odd.bytes == nil)
            #expect(odd.time == Timestamp(secondsSinceEpoch: 1_769_857_201))
            let old = try Self.read(#"h - - [31/Jan/2026:12:00:01 +0100] "GET /" 200 5"#).get()
            #expect(old.target == "/" && old.time == odd.time)
        }

        @Test(
            "A client that sent no request line has no method",
            arguments: [#""-""#, #""""#, #""\x16\x03\x01""#, #""GET""#, #""<?> / HTTP/1.1""#]
        )
        func noRequest(_ request: String) throws {
            let line = try Self.read("h - - [31/Jan/2026:12:00:01 +0100] \(request) 400 0").get()
            #expect(line.method == nil && line.status == .badRequest)
        }

        @Test(
            "Malformed lines are reported",
            arguments: [
                ("", AccessLogLine.Malformation.time), ("h - - [yesterday] \"GET / HTTP/1.1\" 200 5", .time),
                ("h - - [31/Feb/2026:12:00:01 +0100] \"GET / HTTP/1.1\" 200 5", .time),
                ("h - - [31/Jan/2026:12:00:01 +0100] GET / 200 5", .request),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1", .request),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1\\\"", .request),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1\" ok 5", .status),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1\" 20 5", .status),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1\" 200", .size),
                ("h - - [31/Jan/2026:12:00:01 +0100] \"GET / HTTP/1.1\" 200 -5", .size),
                (String(repeating: "x", count: 1 << 16), .tooLong),
            ]
        )
        func malformed(_ text: String, _ malformation: AccessLogLine.Malformation) {
            #expect(Self.read(text) == .failure(malformation))
        }

        @Test("Random bytes never trap", arguments: [1, 2, 3] as [UInt64])
        func fuzz(_ seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            let good = Array(#"h - - [31/Jan/2026:12:00:01 +0100] "GET /a HTTP/1.1" 200 99999999999999999999999 "#.utf8)
            let special = Array(#"[]"\ -/:.+09T"#.utf8) + [0, 0xFF, 0x0D]
            for _ in 0..<3_000 {
                var line = good
                for _ in 0..<Int.random(in: 0...6, using: &generator) {
                    let place = Int.random(in: 0..<line.count, using: &generator)
                    switch Int.random(in: 0...2, using: &generator) {
                    case 0: line[place] = special[Int.random(in: 0..<special.count, using: &generator)]
                    case 1: line.removeSubrange(place..<min(line.count - 1, place + 5))
                    default: line.insert(special[Int.random(in: 0..<special.count, using: &generator)], at: place)
                    }
                }
                _ = Result { () throws(AccessLogLine.Malformation) in try AccessLogLine(line[...]) }
                _ = LogTime.iso8601(line[...])
            }
        }
    }

    @Suite("LineReader")
    struct LineReaderTests {
        @Test("Lines across blocks, one that is too long, and a last one without a line ending")
        func reads() throws {
            let folder = try TestFolder()
            let long = String(repeating: "y", count: 3 << 20)
            let many = (0..<200_000).map { "line \($0)" }.joined(separator: "\n")
            let file = try folder.file("text", many + "\n\n" + long + "\nlast")
            var reader = LineReader(try LogSource(file))
            for number in 0..<200_000 {
                let line = try #require(try reader.next())
                guard line.elementsEqual("line \(number)".utf8) else {
                    Issue.record("line \(number)")
                    return
                }
            }
            #expect(try reader.next()?.isEmpty == true)
            #expect(try reader.next()?.count == LineReader.longestLine)
            #expect(reader.number == 200_002)
            #expect(try reader.next().map { String(decoding: $0, as: UTF8.self) } == "last")
            #expect(try reader.next() == nil)
        }
    }
#endif
