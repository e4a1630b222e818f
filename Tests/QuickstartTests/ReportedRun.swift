// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit

extension RecordedConsole {
    /// The runs of a JSON report.
    func runs() throws -> [ReportedRun] {
        try JSONDecoder().decode(Reported.self, from: bytes).runs
    }
}

private struct Reported: Decodable {
    let runs: [ReportedRun]
}

/// A run as a reader of the JSON sees it; the keys are the program's promise.
struct ReportedRun: Decodable, Equatable {
    let name: String
    let calls, sent, failed, hits, revalidated, collapsed, misses, bytesSaved, bytesFromNetwork: Int
    let hitRatio, byteHitRatio, p50ms, p99ms, seconds: Double
}

/// A directory of a test's own, until the test removes it.
struct ScratchDirectory {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("quickstart-tests-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// Removes it with all it holds.
    func remove() {
        try? FileManager.default.removeItem(at: url)
    }

    /// The names in it, in order.
    func contents() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: url.path).sorted()
    }
}
