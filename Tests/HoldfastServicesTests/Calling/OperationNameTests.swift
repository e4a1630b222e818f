// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What those who observe a pipeline know its calls by.
@Suite(.timeLimit(.minutes(20))) struct OperationNameTests {
    @Test("A logger among a pipeline's hooks shows the operation's name, and its filter can use it")
    func logger() async throws {
        let lines = Lines()
        var logger = CallLogger { lines.add($0) }
        logger.filter = .operations("getForecast")
        let pipeline = Pipeline(
            transport: ScriptedTransport([.respond()], repeatsLastStep: true),
            hooks: [logger]
        )
        let request = URLRequest(url: try #require(URL(string: "https://example.com/")))
        var options = CallOptions()
        options.operationName = "getForecast"
        _ = try await pipeline.send(request, options: options)
        options.operationName = "other"
        _ = try await pipeline.send(request, options: options)
        #expect(lines.all.count == 2)
        #expect(lines.all.allSatisfy { $0.contains("getForecast") })
    }
}

private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
}
