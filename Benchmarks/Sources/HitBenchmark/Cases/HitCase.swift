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
        /// `send` with Authorization, as most clients of an API do; the response is the principal's own.
        case authorized
        /// `send` with a Cookie, which the public response answers too.
        case cookies
        /// `send` with a Cache-Control, as from a caller that wants nothing older than an hour.
        case directives
        /// `send` with a `cachePolicy` that the cache judges in full each time.
        case judged

        /// Faces that every subject knows; the others say something that only a cache by HTTP's rules evaluates.
        var isCommon: Bool { self == .send || self == .data }
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
            for face in Face.allCases where !face.isCommon {
                made.append(HitCase(tier: tier, length: length, face: face, threads: 1))
            }
        }
        return made
    }
}
