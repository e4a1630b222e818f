// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Trace files")
struct TraceFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func path(_ name: String) -> String { directory.path + "/" + name }

    private func sample(_ count: Int) -> RequestTrace {
        var trace = RequestTrace()
        for index in 0..<count { trace.append(key: UInt64(index % 77), size: UInt32(index % 77 + 1)) }
        return trace
    }

    @Test("A written trace is read back: at once, in pieces, and by a simulator that keeps only keys")
    func roundTrip() throws {
        defer { directory.remove() }
        let trace = sample(200_000)
        try trace.write(to: path("a.trace"))
        #expect(directory.files() == ["a.trace"])
        #expect(try directory.bytes(of: "a.trace") == trace.encoded)
        #expect(try RequestTrace(contentsOf: path("a.trace")).requests == trace.requests)
        #expect(
            try RequestTrace(contentsOf: path("a.trace"), limit: 70_001).requests == trace.requests.prefix(70_001) + []
        )

        var reader = try TraceReader(path: path("a.trace"))
        #expect(reader.requestCount == 200_000)
        var sizes: [Int] = []
        while case let records = try reader.next(upTo: 70_000), !records.isEmpty { sizes.append(records.count) }
        #expect(sizes == [70_000, 70_000, 60_000])

        var (streamed, whole) = (HitRateSimulator(), HitRateSimulator())
        streamed.add(.lru, capacity: 1_000)
        whole.add(.lru, capacity: 1_000)
        var told: [Int] = []
        try streamed.replay(contentsOf: path("a.trace"), every: 90_000) { told.append($0) }
        whole.replay(trace)
        #expect(streamed.results == whole.results)
        #expect(told == [90_000, 180_000, 200_000])
    }

    @Test("A file is replaced as a whole, and one that cannot be written leaves nothing behind")
    func writing() throws {
        defer { directory.remove() }
        try sample(10).write(to: path("a.trace"))
        try sample(5).write(to: path("a.trace"))
        #expect(try RequestTrace(contentsOf: path("a.trace")).requests.count == 5)
        #expect(throws: TraceError.self) { try sample(5).write(to: path("none/a.trace")) }
        try FileManager.default.createDirectory(atPath: path("d"), withIntermediateDirectories: false)
        let error = try #require(throws: TraceError.self) { try sample(5).write(to: path("d")) }
        #expect(error.code == .unwritable && error.cause != nil)
        #expect(directory.files() == ["a.trace"])
    }

    @Test(
        "A file that is not a trace is refused with advice on what to do",
        arguments: [
            ([], TraceError.Code.empty, "record"), ([UInt8](repeating: 1, count: 25), .malformed, "12 bytes"),
        ]
    )
    func damaged(_ bytes: [UInt8], _ code: TraceError.Code, _ hint: String) throws {
        defer { directory.remove() }
        try directory.write(bytes, to: "x.trace")
        let error = try #require(throws: TraceError.self) { try RequestTrace(contentsOf: path("x.trace")) }
        #expect(error.code == code && error.message.contains(hint) && error.message.contains("x.trace"))
        // Said when it is opened, before hours of work.
        #expect(throws: TraceError.self) { _ = try TraceReader(path: path("x.trace")) }
        var simulator = HitRateSimulator()
        #expect(throws: TraceError.self) { try simulator.replay(contentsOf: path("x.trace")) }
    }

    @Test(
        "A text without requests: the line that was taken for a header is named",
        arguments: [
            ("# none\n10 /a\n", "line 2 is not 'key size'"), ("key size\n", "line 1 is not 'key size'"),
            ("# none\n\n", "write a line 'key size'"),
        ]
    )
    func nothingRead(_ text: String, _ hint: String) throws {
        defer { directory.remove() }
        try directory.write(Array(text.utf8), to: "x.txt")
        let error = try #require(throws: TraceError.self) { try RequestTrace(contentsOfText: path("x.txt")) }
        #expect(error.code == .empty && error.message.contains(hint), "\(error)")
    }

    @Test("A missing file, and a directory, cannot be read")
    func unreadable() throws {
        defer { directory.remove() }
        for path in [path("none"), directory.path] {
            let error = try #require(throws: TraceError.self) { try RequestTrace(contentsOf: path) }
            #expect(error.code == .unreadable && error.cause != nil)
            #expect("\(error)".hasPrefix("unreadable: \(path)"))
            #expect(throws: TraceError.self) { try RequestTrace(contentsOfText: path) }
        }
    }

    @Test("More keys than numbers are an error, not a wrong result")
    func tooManyKeys() throws {
        defer { directory.remove() }
        try sample(10).write(to: path("a.trace"))
        let error = try #require(throws: TraceError.self) {
            try RequestTrace(reading: TraceReader(path: path("a.trace")), maximumKeys: 9)
        }
        #expect(error.code == .tooManyKeys)
    }

    @Test("A link to a trace is followed, and a pipe is read to its end")
    func linksAndPipes() throws {
        defer { directory.remove() }
        let trace = sample(1_000)
        try trace.write(to: path("a.trace"))
        try FileManager.default.createSymbolicLink(atPath: path("b.trace"), withDestinationPath: path("a.trace"))
        #expect(try RequestTrace(contentsOf: path("b.trace")).requests == trace.requests)
        let pipe = Pipe()
        // Less than a pipe holds, so that writing does not wait for a reader.
        pipe.fileHandleForWriting.write(Data(trace.encoded.prefix(12_000)))
        try pipe.fileHandleForWriting.close()
        let reader = try TraceReader(path: "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)")
        #expect(reader.requestCount == nil)
        #expect(try RequestTrace(reading: reader).requests == trace.requests)
    }
}
