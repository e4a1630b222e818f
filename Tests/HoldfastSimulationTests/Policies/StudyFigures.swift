// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// What the study behind the policies measured: hit ratios in percent for each trace, size and policy.
enum StudyFigures {
    /// One trace at one size, as a share of its unique bytes.
    struct Cell: Sendable, CustomTestStringConvertible {
        let trace: String
        let share: Double
        /// Object and byte hit ratio by the policy's name.
        let ratios: [String: (objects: Double, bytes: Double)]

        var testDescription: String { "\(trace)@\(share)" }
    }

    static let policies = ["lru", "fifo", "sieve", "gdsf", "s3fifo", "wtinylfu", "belady", "belady-size"]

    /// Quick to replay in a debug build.
    static let quick: Set = ["lirs_multi3"]

    /// Whether all cells are to be replayed: HIT_RATE_CELLS=all.
    static let isWhole = ProcessInfo.processInfo.environment["HIT_RATE_CELLS"] == "all"

    /// The cells to replay: those of the quick traces, or all of them.
    static var chosen: [Cell] {
        cells.filter { isWhole || quick.contains($0.trace) }
    }

    /// The folder of the traces, beside the package.
    static let folder: URL = {
        var root = URL(fileURLWithPath: #filePath)
        while root.path.count > 1, root.lastPathComponent != "Tests" { root.deleteLastPathComponent() }
        return root.deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("shared/traces")
    }()

    static var areTracesThere: Bool { FileManager.default.fileExists(atPath: folder.path) }

    static func trace(_ name: String) throws -> RequestTrace {
        let file = folder.appendingPathComponent(name + ".trace")
        return RequestTrace(decoding: [UInt8](try Data(contentsOf: file)))
    }

    static let cells: [Cell] = table.split(separator: "\n").compactMap { line in
        let fields = line.split(separator: " ")
        guard fields.count == 2 + 2 * policies.count, let share = Double(fields[1]) else { return nil }
        let numbers = fields.dropFirst(2).compactMap { Double($0) }
        let pairs = policies.enumerated().map { ($1, (numbers[2 * $0], numbers[2 * $0 + 1])) }
        return Cell(
            trace: String(fields[0]),
            share: share / 100,
            ratios: Dictionary(uniqueKeysWithValues: pairs.map { ($0, (objects: $1.0, bytes: $1.1)) })
        )
    }

    /// Trace, size in percent, then objects and bytes for each of `policies`.
    private static let table = """
        arc_oltp 0.1 13.72 13.72 12.89 12.89 8.97 8.97 18.72 18.72 17.71 17.71 20.71 20.71 34.95 34.95 34.76 34.76
        arc_oltp 1 41.63 41.63 36.59 36.59 40.29 40.29 44.67 44.67 46.46 46.46 45.88 45.88 59.76 59.76 59.57 59.57
        arc_oltp 10 66.52 66.52 63.34 63.34 66.66 66.66 67.82 67.82 67.66 67.66 63.18 63.18 76.21 76.21 76.20 76.20
        bu98 0.1 15.16 16.33 14.76 15.72 16.79 18.92 20.90 9.63 16.81 8.21 17.04 17.86 23.47 24.10 27.07 23.03
        bu98 1 24.52 27.78 23.39 26.52 26.01 29.13 33.05 25.21 28.05 28.64 26.67 26.64 34.95 35.91 38.99 34.83
        bu98 10 34.36 35.43 32.85 34.22 37.67 37.62 41.96 35.36 37.89 37.60 37.60 36.16 45.04 42.94 45.04 42.94
        c2k_web07 0.1 21.32 21.32 20.72 20.72 22.13 22.13 24.36 24.36 22.34 22.34 24.38 24.38 36.60 36.60 36.58 36.58
        c2k_web07 1 39.15 39.15 36.28 36.28 42.32 42.32 43.01 43.01 43.75 43.75 42.15 42.15 53.38 53.38 53.28 53.28
        c2k_web07 10 55.66 55.66 53.12 53.12 57.93 57.93 57.51 57.51 58.22 58.22 56.45 56.45 68.09 68.09 68.04 68.04
        cloudphysics_io 0.1 14.88 1.93 13.69 1.76 16.81 2.16 16.80 2.13 16.69 2.15 16.18 2.06 17.53 2.76 18.41 2.67
        cloudphysics_io 1 16.60 2.28 16.29 2.24 17.67 2.43 17.89 2.32 17.64 2.54 17.78 3.11 20.00 6.45 21.82 6.09
        cloudphysics_io 10 18.87 4.98 19.01 5.12 20.72 6.90 22.60 4.99 24.15 12.24 25.81 14.88 34.56 26.76 38.47 25.83
        corda_vault 0.1 33.33 33.33 33.33 33.33 0.06 0.06 33.33 33.33 0.42 0.42 29.69 29.69 33.33 33.33 33.33 33.33
        corda_vault 1 33.33 33.33 33.33 33.33 0.66 0.66 33.33 33.33 33.33 33.33 28.82 28.82 33.33 33.33 33.33 33.33
        corda_vault 10 33.33 33.33 33.33 33.33 6.66 6.66 33.33 33.33 33.33 33.33 33.33 33.33 33.33 33.33 33.33 33.33
        cran_dec14 0.1 5.73 5.19 5.24 4.69 7.96 7.17 23.52 8.16 18.40 9.42 11.84 9.64 15.46 12.61 22.25 11.40
        cran_dec14 1 22.63 23.09 20.63 21.11 31.38 30.87 48.63 27.30 36.10 32.48 34.18 33.03 43.96 46.27 56.50 38.94
        cran_dec14 10 63.07 69.66 57.81 63.36 67.79 75.92 77.99 68.75 68.17 75.69 67.14 74.48 75.26 82.54 84.26 75.61
        lirs_2pools 0.1 1.96 1.96 1.97 1.97 3.49 3.49 2.02 2.02 0.00 0.00 4.44 4.44 16.25 16.25 16.25 16.25
        lirs_2pools 1 21.77 21.77 19.21 19.21 47.70 47.70 38.19 38.19 44.58 44.58 47.62 47.62 50.51 50.51 50.17 50.17
        lirs_2pools 10 54.38 54.38 49.89 49.89 54.32 54.32 54.40 54.40 54.33 54.33 54.32 54.32 68.46 68.46 68.26 68.26
        lirs_multi3 0.1 1.26 1.26 1.05 1.05 1.28 1.28 1.75 1.75 0.00 0.00 3.70 3.70 6.71 6.71 6.71 6.71
        lirs_multi3 1 5.14 5.14 4.99 4.99 7.58 7.58 5.69 5.69 15.29 15.29 22.25 22.25 28.55 28.55 28.25 28.25
        lirs_multi3 10 35.49 35.49 29.18 29.18 37.35 37.35 36.67 36.67 47.72 47.72 47.50 47.50 52.91 52.91 52.72 52.72
        scarab_recs 0.1 14.56 14.56 13.69 13.69 15.75 15.75 17.90 17.90 17.58 17.58 17.80 17.80 28.97 28.97 28.89 28.89
        scarab_recs 1 29.34 29.34 27.06 27.06 35.74 35.74 34.63 34.63 37.70 37.70 37.49 37.49 47.48 47.48 47.31 47.31
        scarab_recs 10 51.88 51.88 48.52 48.52 53.59 53.59 53.59 53.59 55.51 55.51 53.32 53.32 67.85 67.85 67.74 67.74
        tencent_ns1326 0.1 2.36 3.20 2.36 3.20 2.54 3.51 2.29 2.67 1.97 0.91 2.66 4.50 4.78 7.69 6.00 5.55
        tencent_ns1326 1 3.89 5.63 3.79 5.40 4.76 14.20 4.70 4.09 4.92 15.01 5.28 15.93 12.45 21.62 17.51 15.94
        tencent_ns1326 10 11.68 21.06 11.24 18.18 13.08 23.09 18.99 19.23 15.42 30.37 15.72 25.48 31.96 41.08 43.35 36.56
        twitter52_a 0.1 49.94 46.58 46.54 43.81 51.53 45.90 57.88 42.65 50.66 42.37 52.91 48.11 62.78 60.01 66.30 57.41
        twitter52_a 1 65.85 63.60 63.27 61.04 67.30 65.00 72.07 63.77 69.12 67.19 69.19 67.31 75.52 74.28 78.50 71.36
        twitter52_a 10 79.09 78.44 76.72 75.73 80.17 79.82 82.22 77.78 81.23 80.93 80.57 80.09 84.77 84.74 85.32 84.47
        zipf_open 0.1 7.36 3.84 6.26 3.48 13.05 9.69 18.47 4.48 17.09 11.05 14.90 11.44 20.12 16.67 27.69 12.37
        zipf_open 1 20.33 17.27 18.10 14.96 28.59 25.45 36.08 15.64 29.93 27.29 28.99 26.02 39.34 37.08 49.56 29.25
        zipf_open 10 44.14 42.18 40.53 38.34 47.89 45.85 60.82 40.58 49.85 48.08 49.08 47.40 63.39 62.08 69.30 57.05
        """
}
