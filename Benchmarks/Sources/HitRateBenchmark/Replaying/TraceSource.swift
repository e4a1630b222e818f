// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastSimulation

/// The source of requests, with its name in the results.
struct TraceSource: Sendable, Hashable {
    /// The file; nil: a generated trace.
    let path: String?

    /// The sources of a plan.
    static func all(_ plan: Plan) -> [TraceSource] {
        plan.traces.isEmpty ? [TraceSource(path: nil)] : plan.traces.map { TraceSource(path: $0) }
    }

    /// The file's name without its last extension.
    var name: String {
        guard let path else { return "zipf" }
        return URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    }

    /// The share of all keys that the trace contains: from `FILE.rate`, which a recorder of a sample writes beside it;
    /// otherwise 1.
    var rate: Double {
        guard let path, let text = try? String(contentsOfFile: path + ".rate", encoding: .utf8),
            let rate = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)), rate > 0, rate < 1
        else { return 1 }
        return rate
    }

    /// The requests, at most `limit` of them.
    func trace(seed: UInt64, limit: Int?) throws(TraceError) -> RequestTrace {
        guard let path else { return SyntheticTrace.make(seed: seed, requests: min(limit ?? .max, 200_000)) }
        let isText = ["txt", "csv", "tsv", "log"].contains(URL(fileURLWithPath: path).pathExtension.lowercased())
        return isText
            ? try RequestTrace(contentsOfText: path, limit: limit) : try RequestTrace(contentsOf: path, limit: limit)
    }
}
