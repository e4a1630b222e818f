// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Stores against a dictionary", .timeLimit(.minutes(10)))
struct ModelTests {
    private struct Known {
        var entry: StoredEntry
        let body: [UInt8]
    }

    /// The dictionary: variants of each key, newest first.
    private typealias Model = [String: [Known]]

    @Test("Random operations give what a dictionary gives", arguments: StoreMaker.all, 100..<108 as Range<UInt64>)
    func model(maker: StoreMaker, seed: UInt64) async throws {
        let fixture = try await maker.make(64 << 20)
        defer { fixture.directory?.remove() }
        var store = fixture.store
        var generator = SeededGenerator(seed: seed)
        var model: Model = [:]
        for step in 0..<250 {
            let comment: Comment = "\(maker) seed \(seed) step \(step)"
            let key = "key\(Int.random(in: 0..<6, using: &generator))"
            let now = StoreInstant.at(Int64(step))
            switch Int.random(in: 0..<12, using: &generator) {
            case 0...3:
                let variant = "\(Int.random(in: 0..<4, using: &generator))"
                let body = generator.bytes([0, 10, 70_000].randomElement(using: &generator) ?? 0)
                let tags: Set<String> = Bool.random(using: &generator) ? ["t\(step % 3)"] : []
                let entry = try await store.put(
                    key,
                    variant: variant,
                    body,
                    EntryDescription("\(step)", tags: tags),
                    now: now
                )
                model[key, default: []].removeAll { $0.entry.variant == entry.variant }
                model[key, default: []].insert(Known(entry: entry, body: body), at: 0)
            case 4:
                guard let known = model[key]?.randomElement(using: &generator) else { continue }
                let description = EntryDescription("fresh \(step)")
                let entry = try await store.replaceDescription(of: known.entry, with: description, now: now)
                model[key]?.removeAll { $0.entry.version == known.entry.version }
                model[key]?.insert(Known(entry: try #require(entry, comment), body: known.body), at: 0)
            case 5:
                guard let known = model[key]?.randomElement(using: &generator) else { continue }
                try await store.remove(known.entry)
                model[key]?.removeAll { $0.entry.version == known.entry.version }
            case 6:
                try await store.invalidate(StoreKey(key))
                model[key] = []
            case 7:
                let tag = "t\(step % 3)"
                let count = try await store.purge(.tag(tag), now: now)
                let before = model.values.reduce(0) { $0 + $1.count }
                for key in model.keys { model[key]?.removeAll { $0.entry.description.tags.contains(tag) } }
                #expect(count == before - model.values.reduce(0) { $0 + $1.count }, comment)
            case 8:
                guard let place = model[key]?.indices.randomElement(using: &generator),
                    let entry = model[key]?[place].entry
                else { continue }
                let pins = Bool.random(using: &generator)
                #expect(try await store.setPinned(pins, entry), comment)
                model[key]?[place].entry = try #require(
                    try await store.get(key).first { $0.version == entry.version },
                    comment
                )
                #expect(model[key]?[place].entry.isPinned == pins, comment)
            case 9 where step % 5 == 0:
                guard let directory = fixture.directory else { continue }
                await store.close()
                store = try await DiskStore.open(directory: directory.path, capacity: 64 << 20, now: now)
            default:
                break
            }
            #expect(try await store.get(key, now: now) == (model[key] ?? []).map(\.entry), comment)
            if let known = model[key]?.randomElement(using: &generator) {
                #expect(try await store.wholeBody(of: known.entry) == known.body, comment)
            }
            #expect(store.statistics.entryCount == model.values.reduce(0) { $0 + $1.count }, comment)
        }
        await store.close()
    }
}
