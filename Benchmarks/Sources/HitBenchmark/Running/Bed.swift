// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Foundation
internal import Harness
internal import Holdfast

/// The subjects of one tier and one length, filled, and what they are asked.
struct Bed: Sendable {
    let subjects: [any Subject]
    private let askings: [Asking]
    private let judged: Asking

    /// Makes and fills the subjects that the options ask for.
    ///
    /// - Parameters:
    ///   - directory: where their files go; nothing is put there for the memory tier, unless it is tiered.
    ///   - line: where Holdfast's work in the background runs; nil: where any task does.
    init(
        _ plan: Plan,
        _ options: CommandOptions,
        _ tier: HitCase.Tier,
        _ length: Int,
        directory: String,
        line: JobLine? = nil
    ) async throws {
        let count = plan.entries
        askings = (0..<2).map { Asking(count, length: length, thread: $0) }
        // Said at each request, as a caller does who wants nothing older than an hour.
        judged = Asking(count, length: length, thread: 0, directive: "max-age=3600")
        // The usual capacities, or room for all.
        let room = 4 * count * (length + 2_048)
        let (memory, disk) = (max(32 << 20, room), max(256 << 20, room))
        func place(_ name: String) -> URL { URL(fileURLWithPath: "\(directory)/\(tier.rawValue)-\(length)-\(name)") }
        func filled(_ name: String, _ cache: HTTPCache) async throws -> HoldfastSubject {
            try await HoldfastSubject(name, cache, count: count, length: length, line: line)
        }
        var made: [any Subject] = []
        if options.includes(subject: "holdfast") {
            let cache =
                tier == .memory
                ? HTTPCache.inMemory(capacity: memory)
                : try await HTTPCache.onDisk(at: place("holdfast"), capacity: disk)
            made.append(try await filled("holdfast", cache))
        }
        if options.includes(subject: "holdfast-tiered"), tier == .memory {
            let cache = try await HTTPCache.tiered(at: place("tiered"), memory: memory, capacity: disk)
            made.append(try await filled("holdfast-tiered", cache))
        }
        if options.includes(subject: "dictionary"), tier == .memory {
            made.append(DictionarySubject(count: count, length: length))
        }
        if options.includes(subject: "raw"), tier == .disk {
            made.append(try RawFileSubject(path: place("raw").path, count: count, length: length))
        }
        if options.includes(subject: "urlcache") {
            let few = tier == .disk ? plan.slowEntries : count
            let directory = tier == .disk ? place("urlcache").path : nil
            made.append(try URLCacheSubject(directory: directory, count: few, length: length))
        }
        subjects = made
    }

    /// The contests of a case, one for each subject that has it.
    func contests(_ hitCase: HitCase) -> [Contest] {
        subjects.filter { $0.takesPart(in: hitCase) }.map { subject in
            Contest(
                hitCase.name,
                subject.name,
                threads: hitCase.threads,
                isSlow: subject.isSlow
            ) { [askings, judged] thread, places in
                let asking = hitCase.face == .judged ? judged : askings[thread]
                return try await subject.ask(asking, places, hitCase.face)
            }
        }
    }
}
