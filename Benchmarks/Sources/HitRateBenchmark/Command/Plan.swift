// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastSimulation

/// The traces, subjects and output of a replay.
struct Plan: Sendable {
    /// Files with requests; empty: a generated trace.
    let traces: [String]
    let subjects: [Subject]
    let sizes: [CacheSize]
    let seed: UInt64
    /// The measure of the plot.
    let measure: HitRateMeasure
    /// The path of the plot; nil: no plot.
    let plot: String?
    /// The share of all keys that the traces contain, if they are samples; nil: read from the file beside each trace.
    let rate: Double?
    /// The share of the requests at the start that are not counted.
    let warmUp: Double
    /// Whether a different size of a key means a different version.
    let sizesTellVersions: Bool
    /// The number of requests from the start of each trace; nil: all.
    let limit: Int?
    /// No further replay begins after this many seconds.
    let seconds: Double
    /// The number of concurrent replays.
    let width: Int

    /// Options besides the common ones.
    static let wordOptions: Set<String> = ["trace", "policy", "size", "plot", "measure", "rate", "warm-up", "versions"]
    static let numberOptions: Set<String> = ["seed", "requests", "jobs"]

    /// Creates the plan from the options.
    init(_ options: CommandOptions) throws(CommandOptions.Misuse) {
        if !options.cases.isEmpty || options.directory != nil {
            throw CommandOptions.Misuse(
                "hitrate has neither --case nor --directory; use --trace, --size and --policy."
            )
        }
        traces = options.words["trace"] ?? []
        warmUp = try Self.share("warm-up", options, default: 0, 0...0.99)
        let named = (options.words["policy"] ?? []) + options.subjects
        // A bound counts from the first request, so that it would not bound policies with a warm-up.
        subjects = try Subject.list(named).filter { [warmUp] in warmUp == 0 || !$0.isBound }
        if subjects.isEmpty {
            throw CommandOptions.Misuse("belady and belady-size do not support --warm-up; leave it out.")
        }
        plot = options.words["plot"]?.last
        let sizes = options.words["size"]?.joined(separator: ",") ?? (plot == nil ? "0.1%,1%,10%" : "curve")
        guard let sizes = CacheSize.list(sizes) else {
            throw CommandOptions.Misuse(
                "--size needs sizes such as 0.1%, 1%, 64MB, 1GiB, or curve, separated by commas, not '\(sizes)'."
            )
        }
        self.sizes = sizes
        seed = UInt64(options.numbers["seed"] ?? 1)
        let measure = options.words["measure"]?.last ?? HitRateMeasure.object.rawValue
        guard let measure = HitRateMeasure(rawValue: measure) else {
            throw CommandOptions.Misuse("--measure must be object or byte, not '\(measure)'.")
        }
        self.measure = measure
        rate =
            options.words["rate"] == nil ? nil : try Self.share("rate", options, default: 1, (0.000_001)...1)
        let versions = options.words["versions"]?.last ?? "by-size"
        guard ["by-size", "by-key"].contains(versions) else {
            throw CommandOptions.Misuse("--versions must be by-size or by-key, not '\(versions)'.")
        }
        sizesTellVersions = versions == "by-size"
        limit = options.numbers["requests"] ?? (options.isQuick ? 200_000 : nil)
        seconds = options.isQuick ? 32 : .infinity
        width = max(1, options.numbers["jobs"] ?? ProcessInfo.processInfo.activeProcessorCount)
        if plot != nil, traces.count > 1, Set(sizes.map { $0.description.hasSuffix("%") }).count > 1 {
            throw CommandOptions.Misuse("A plot of several traces needs sizes in percent or in bytes, not both.")
        }
        if let limit, limit == 0 { throw CommandOptions.Misuse("--requests must be 1 or more.") }
    }

    private static func share(
        _ name: String,
        _ options: CommandOptions,
        default usual: Double,
        _ range: ClosedRange<Double>
    ) throws(CommandOptions.Misuse) -> Double {
        guard let text = options.words[name]?.last else { return usual }
        guard let share = Double(text), range.contains(share) else {
            throw CommandOptions.Misuse(
                "--\(name) needs a number from \(range.lowerBound) to \(range.upperBound), not '\(text)'."
            )
        }
        return share
    }
}
