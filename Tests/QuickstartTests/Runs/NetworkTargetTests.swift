// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import Quickstart

/// A server of three pages that have validators and stay fresh for an hour.
private func startPages() throws -> LoopbackServer {
    try LoopbackServer.start { request in
        let tag = "\"\(request.path)\""
        let fields = [("ETag", tag), ("Cache-Control", "max-age=3600")]
        if request.values(of: "If-None-Match") == [tag] { return LoopbackReply(304, fields: fields) }
        return LoopbackReply(fields: fields, body: "page \(request.path)")
    }
}

@Suite("Real URLs", .timeLimit(.minutes(20)))
struct NetworkTargetTests {
    @Test("A restarted client revalidates each URL once and takes the rest from its disk")
    func revalidation() async throws {
        let server = try startPages()
        defer { server.stop() }
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let urls = ["/a", "/b", "/c"].map { server.url($0).absoluteString }
        let recording = RecordedConsole()
        let words = ["--json", "--calls", "20", "--concurrency", "1", "--directory", scratch.url.path] + urls
        let status = await Quickstart.run(words, on: recording.console)
        #expect(status == 0, "\(recording.error)")
        let runs = try recording.runs()
        #expect(runs.map(\.sent) == [20, 20, 3, 3])
        #expect(runs.map(\.failed) == [0, 0, 0, 0])
        #expect(runs.map(\.revalidated) == [0, 0, 0, 3])
        #expect(runs.map(\.hits) == [0, 0, 17, 17])
        #expect(runs[0].bytesFromNetwork == 20 * "page /a".utf8.count)
        #expect(runs[3].bytesFromNetwork == 0)

        // Three probes, then what the program counted; the last three are conditional.
        let requests = server.requests
        let counted = runs.reduce(0) { $0 + $1.sent }
        #expect(requests.count == counted + 3)
        #expect(requests.filter { !$0.values(of: "If-None-Match").isEmpty }.map(\.path) == ["/a", "/b", "/c"])
        #expect(requests.suffix(3).map(\.path) == ["/a", "/b", "/c"])
    }

    @Test("A URL that does not answer ends the program with status 1 and one line that names it")
    func unreachable() async throws {
        let server = try startPages()
        defer { server.stop() }
        let good = server.url("/a").absoluteString
        let bad = "http://127.0.0.1:\(try LoopbackServer.refusingPort())/x"
        let recording = RecordedConsole()
        #expect(await Quickstart.run([good, bad, "--json"], on: recording.console) == 1)
        #expect(recording.error.hasPrefix("quickstart: \(bad) cannot be reached: "))
        #expect(recording.error.split(separator: "\n").count == 1)
        #expect(recording.output.isEmpty)
        #expect(server.requests.count == 1)
    }

    @Test("The counting transport counts every send and every body byte once, failures included")
    func counting() async throws {
        let target = OriginTarget(resources: 30, failShare: 0.3, seed: 2, clock: InstantClock())
        let origin = target.connect()
        let counting = CountingTransport(origin.transport)
        let pipeline = Pipeline(transport: counting)
        for call in Load(count: 60, resources: 30, seed: 2).calls {
            _ = try? await pipeline.send(target.request(for: call)).body.collect()
        }
        #expect(counting.traffic == origin.traffic())
        #expect(counting.traffic.sends == 60)
    }
}
