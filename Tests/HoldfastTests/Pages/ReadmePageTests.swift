// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Runs the code of README.md on wrapping a client; its other blocks stand in the tests of the pages that they lead to.
@Suite("README: Wrap a client", .timeLimit(.minutes(20)))
struct ReadmePageTests {
    @Test("The second call is answered from the directory, by another cache over it")
    func wrapping() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello")
        }
        let folder = try Folder()
        for ratio in [0.0, 1] {
            let (data, response, statistics) = try await loadAsInReadme(
                URLRequest(url: server.url()),
                at: folder.url.appendingPathComponent("cache")
            )
            #expect(data == Data("hello".utf8))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(statistics.hitRatio == ratio)
        }
        #expect(server.requests.count == 1)
    }
}
