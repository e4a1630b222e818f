// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a call carries with it, so that a test can see whether the call was let go.
private final class Luggage: Sendable {}

@Suite("Nothing keeps a finished call in memory", .timeLimit(.minutes(20)))
struct FetchLifetimeTests {
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [ScriptedTransport.Step]
        var first: String?
        var second: String?
        var age = 100
        var acceptance: Acceptance?
    }

    private static let tagged: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
    private static let swr: HeaderFields = [
        "Cache-Control": "max-age=60, stale-while-revalidate=600, stale-if-error=600", "ETag": "\"1\"",
    ]
    private static let part: HeaderFields = [
        "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-3/8",
    ]
    private static let otherPart: HeaderFields = [
        "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 4-7/8",
    ]

    static let ways: [Way] = [
        Way(testDescription: "stored, then fresh", steps: [.stream(200, tagged, chunks: ["one", "two"])], age: 0),
        Way(
            testDescription: "not stored",
            steps: [
                .stream(200, ["Cache-Control": "no-store"], chunks: ["one"]),
                .stream(200, ["Cache-Control": "no-store"], chunks: ["one"]),
            ]
        ),
        Way(testDescription: "confirmed", steps: [.respond(200, tagged, body: "one"), .respond(304, tagged)]),
        Way(
            testDescription: "replaced after a validation",
            steps: [.stream(200, tagged, chunks: ["one"]), .stream(200, tagged, chunks: ["two"])]
        ),
        Way(
            testDescription: "validation answered past what was asked",
            steps: [
                .stream(200, tagged, chunks: ["one"]), .respond(304, ["ETag": "\"9\""]),
                .stream(200, tagged, chunks: ["two"]),
            ]
        ),
        Way(
            testDescription: "confirmed in the background",
            steps: [.stream(200, swr, chunks: ["one"]), .respond(304, swr)]
        ),
        Way(
            testDescription: "replaced in the background",
            steps: [.stream(200, swr, chunks: ["one"]), .stream(200, swr, chunks: ["two"])]
        ),
        Way(
            testDescription: "stood in for an error",
            steps: [
                .respond(200, ["Cache-Control": "max-age=60, stale-if-error=600", "ETag": "\"1\""], body: "one"),
                .stream(500, chunks: ["sorry"]),
            ]
        ),
        Way(testDescription: "failed", steps: [.stream(200, tagged, chunks: ["one"]), .fail(progress: .headSent)]),
        Way(
            testDescription: "part completed",
            steps: [.stream(206, part, chunks: ["0123"]), .stream(206, otherPart, chunks: ["4567"])],
            first: "bytes=0-3",
            age: 0
        ),
        Way(
            testDescription: "parts joined",
            steps: [.stream(206, part, chunks: ["0123"]), .stream(206, otherPart, chunks: ["4567"])],
            first: "bytes=0-3",
            second: "bytes=4-7",
            age: 0
        ),
        Way(
            testDescription: "accepted",
            steps: [.stream(200, tagged, chunks: ["one"]), .respond(304, tagged)],
            acceptance: .successful
        ),
    ]

    @Test("A call is released once its response is read and dropped", arguments: ways)
    func released(_ way: Way) async throws {
        let bench = CacheBench(ScriptedTransport(way.steps))
        weak var luggage: Luggage?
        for range in [way.first, way.second] {
            luggage = await Self.call(bench, range, way.acceptance)
            await bench.pipeline.drain()
            await until { luggage == nil }
            bench.clock.advance(by: .seconds(way.age))
        }
        #expect(bench.sends == way.steps.count)
    }

    /// Makes a call whose luggage only the call itself holds.
    private static func call(_ bench: CacheBench, _ range: String?, _ acceptance: Acceptance?) async -> Luggage? {
        let luggage = Luggage()
        weak let seen = luggage
        var options = CallOptions()
        options.acceptance = acceptance
        options.retrierFactory = AnyRetrierFactory { [luggage] _ in
            withExtendedLifetime(luggage) { NilRetrier() }
        }
        var request = URLRequest.get()
        request.setValue(range, forHTTPHeaderField: "Range")
        _ = try? await bench.load(request, options)
        return seen
    }
}
