// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Foundation on Linux traps when an exchange ends while it reads a file to upload, so no file may be uploaded by it.
///
/// Cancellation is left to the conformance suite: Foundation has another trap there, which seldom comes, with any content.
@Suite("URLSessionTransport: uploads that are cut off", .timeLimit(.minutes(20)))
struct EndedUploadTests {
    private enum Ending: CaseIterable {
        case reset, close
    }

    @Test(
        "The process survives a hundred uploads that the server cuts off, from a file and as a long stream",
        arguments: ["file", "stream", "foreign"]
    )
    func survives(_ form: String) async throws {
        let seed = UInt64.random(in: .min ... .max)
        print("EndedUploadTests.survives(\(form)): seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let length = 1 << 20
        let file = try ScratchFile(length: length)
        let server = try LoopbackServer.start(
            script: LoopbackScript(
                intake: { head in
                    let parts = head.path.split(separator: "/")
                    guard parts.count == 2, let count = Int(parts[1]) else { return .measure }
                    return .breaking(after: count, resetting: parts[0] == "reset")
                },
                handler: { LoopbackReply(body: "\($0.bodyLength)") }
            )
        )
        defer { server.stop() }
        var limits = URLSessionTransport.Limits()
        limits.requestBodyInMemory = 1 << 10
        let session = URLSession(configuration: .ephemeral)
        let transport =
            form == "foreign"
            ? URLSessionTransport(session: session, limits: limits) : URLSessionTransport(limits: limits)
        let body: RequestBody =
            form == "stream"
            ? .factory(length: length) { ChunkSource([ByteChunk([UInt8](repeating: 7, count: length))]) }
            : .file(file.url)
        for _ in 1...100 {
            let ending = Ending.allCases.randomElement(using: &generator) ?? .reset
            let count = Int.random(in: 0..<length, using: &generator)
            let url = server.url("/\(ending == .reset ? "reset" : "close")/\(count)")
            let error = await #expect(throws: ServiceError.self, "seed \(seed)") {
                try await transport.send(url, method: "PUT", body: body)
            }
            #expect(error?.code == .connectionLost, "seed \(seed): \(String(describing: error))")
        }
        let last = try await transport.send(server.url(), method: "PUT", body: body)
        #expect(try await last.text() == "\(length)", "seed \(seed)")
        session.invalidateAndCancel()
    }

    #if os(Linux)
        @Test("Linux: files do not stay open after their exchanges ended")
        func noFileStaysOpen() async throws {
            let file = try ScratchFile(length: 1 << 20)
            let path = file.url.resolvingSymlinksInPath().path
            let server = try LoopbackServer.start(
                script: LoopbackScript(
                    intake: { $0.path == "/cut" ? .breaking(after: 1_000, resetting: true) : .measure },
                    handler: { _ in LoopbackReply(body: "x") }
                )
            )
            defer { server.stop() }
            let transport = URLSessionTransport()
            for number in 0..<40 {
                let url = server.url(number.isMultiple(of: 2) ? "/" : "/cut")
                _ = try? await transport.send(url, method: "PUT", body: .file(file.url)).text()
            }
            // Foundation lets go of a task some time after its end, so the last ones may be open still.
            #expect(EndedUploadTests.openCount(of: path) < 20)
        }

        private static func openCount(of path: String) -> Int {
            let folder = "/proc/self/fd"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.count {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == path
            }
        }
    #endif
}
