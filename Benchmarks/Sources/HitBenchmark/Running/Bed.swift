// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Foundation
internal import Harness
internal import Holdfast

/// The filled subjects of one tier, one length and one number of resources, with the requests for them.
struct Bed: Sendable {
    let subjects: [any Subject]
    private let askings: [Asking]
    /// Of the kinds that have requests of their own.
    private let edited: [HitCase.Kind: Asking]

    /// Creates and fills the subjects that the options select.
    ///
    /// - Parameters:
    ///   - entries: The number of resources; nil: that of the plan.
    ///   - directory: The directory for their files; the memory tier uses it only for tiered subjects.
    ///   - line: Where Holdfast runs its background work; nil: where every task runs.
    init(
        _ plan: Plan,
        _ options: CommandOptions,
        _ tier: HitCase.Tier,
        _ length: Int,
        entries: Int? = nil,
        directory: String,
        line: JobLine? = nil
    ) async throws {
        let count = entries ?? plan.entries
        askings = (0..<(entries == nil ? 2 : 1)).map { Asking(count, length: length, thread: $0) }
        let kinds: [HitCase.Kind] = entries == nil ? [.authorized, .cookies, .directives, .fullDecision] : []
        edited = Dictionary(
            uniqueKeysWithValues: kinds.map { ($0, Asking(count, length: length, thread: 0, kind: $0)) }
        )
        // The usual capacities, or enough for all.
        let room = 4 * count * (length + 2_048)
        let (memory, disk) = (max(32 << 20, room), max(256 << 20, room))
        // What holds a million prepared responses beside the cache's would measure the machine's memory.
        let hasPeers = count <= HitCase.Kind.uniform50k.entries ?? 0
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
        if options.includes(subject: "holdfast-tiered"), tier == .memory, entries == nil {
            let cache = try await HTTPCache.tiered(at: place("tiered"), memory: memory, capacity: disk)
            made.append(try await filled("holdfast-tiered", cache))
        }
        if options.includes(subject: "dictionary"), tier == .memory, hasPeers {
            made.append(DictionarySubject(count: count, length: length))
        }
        if options.includes(subject: "raw"), tier == .disk {
            made.append(try RawFileSubject(path: place("raw").path, count: count, length: length))
        }
        if options.includes(subject: "urlcache"), hasPeers {
            let few = tier == .disk ? plan.slowEntries : count
            let directory = tier == .disk ? place("urlcache").path : nil
            made.append(try URLCacheSubject(directory: directory, count: few, length: length))
        }
        subjects = made
    }

    /// The contests of a case, one for each subject that takes part.
    func contests(_ hitCase: HitCase) -> [Contest] {
        subjects.filter { $0.takesPart(in: hitCase) }.map { subject in
            Contest(
                hitCase.name,
                subject.name,
                threads: hitCase.threads,
                isSlow: subject.isSlow
            ) { [askings, edited] thread, places in
                try await subject.ask(edited[hitCase.kind] ?? askings[thread], places, hitCase)
            }
        }
    }
}
