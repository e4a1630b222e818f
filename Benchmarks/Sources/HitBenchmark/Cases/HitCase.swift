// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is requested, where it is stored, how it is requested, and by how many threads at the same time.
struct HitCase: Sendable, Equatable {
    /// Where the responses are stored.
    enum Tier: String, Sendable, CaseIterable {
        case memory, disk
    }

    /// How a cache is called.
    enum Face: String, Sendable, CaseIterable {
        /// `send`, collecting the whole body.
        case send
        /// `data(for:)`.
        case data
        /// `send` with a directive in the request, so that the cache evaluates the stored response again.
        case judged
    }

    let tier: Tier
    let length: Int
    let face: Face
    let threads: Int

    /// `memory-1KiB`, `disk-16KiB-data`, `memory-1KiB@2`.
    var name: String {
        "\(tier.rawValue)-\(length >> 10)KiB" + (face == .send ? "" : "-\(face.rawValue)")
            + (threads == 1 ? "" : "@\(threads)")
    }

    static let lengths = [1 << 10, 16 << 10]

    /// All cases, in the order of the tables.
    static let all: [HitCase] = Tier.allCases.flatMap { tier in lengths.flatMap { cases(tier, $0) } }

    private static func cases(_ tier: Tier, _ length: Int) -> [HitCase] {
        var made: [HitCase] = []
        for threads in [1, 2] {
            made.append(HitCase(tier: tier, length: length, face: .send, threads: threads))
            made.append(HitCase(tier: tier, length: length, face: .data, threads: threads))
        }
        // The cost of the evaluation depends neither on the body nor on other threads.
        if tier == .memory, length == lengths[0] {
            made.append(HitCase(tier: tier, length: length, face: .judged, threads: 1))
        }
        return made
    }
}
