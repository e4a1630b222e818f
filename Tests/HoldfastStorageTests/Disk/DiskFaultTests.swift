// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("DiskStore: failing and dying file systems", .timeLimit(.minutes(10)))
struct DiskFaultTests {
    /// What a scripted run was told, by which the store is judged afterwards.
    private struct Log {
        /// The number of the newest acknowledged put of a key and variant.
        var acknowledged: [String: Int] = [:]
        /// Keys of which a removal was acknowledged and nothing was put since, with the highest number put before.
        var removed: [String: Int] = [:]
        /// Puts and removals that failed: either outcome is right.
        var uncertain: Set<String> = []
    }

    private static func body(_ name: String, _ number: Int) -> [UInt8] {
        var generator = SeededGenerator(
            seed: UInt64(number) &* 31 &+ UInt64(name.utf8.reduce(0) { Int($0) &* 7 &+ Int($1) })
        )
        return generator.bytes(number % 3 == 0 ? 70_000 : number % 3 == 1 ? 300 : 0)
    }

    /// One run over all operations; every step may fail.
    private func script(_ store: DiskStore, _ log: inout Log) async {
        var number = 0
        func put(_ key: String, _ variant: String, tags: Set<String> = []) async {
            number += 1
            let name = key + "/" + variant
            do {
                let description = EntryDescription("\(number)", tags: tags)
                try await store.put(key, variant: variant, Self.body(name, number), description)
                log.acknowledged[name] = number
                log.uncertain.remove(name)
                log.removed[key] = nil
            } catch {
                log.uncertain.insert(name)
            }
        }
        func removal(_ key: String, _ step: () async throws -> Void) async {
            for name in log.acknowledged.keys where name.hasPrefix(key + "/") { log.acknowledged[name] = nil }
            do {
                try await step()
                log.removed[key] = number
            } catch {
                log.removed[key] = nil
            }
        }
        await put("solid", "1")
        await put("solid", "2")
        await put("solid", "1")
        await put("freshened", "1")
        if let entry = try? await store.get("freshened").first {
            _ = try? await store.replaceDescription(of: entry, with: entry.description, now: .at(1))
        }
        if let entry = try? await store.get("solid").first {
            _ = try? await store.setPinned(true, entry)
            if let body = try? await store.body(of: entry) { _ = try? await body.whole() }
        }
        await put("invalid", "1")
        await put("invalid", "2")
        await removal("invalid") { try await store.invalidate(StoreKey("invalid")) }
        await put("tagged", "1", tags: ["t"])
        await put("tagged", "2", tags: ["t"])
        await removal("tagged") { try await store.purge(.tag("t"), now: .at(1)) }
        await put("halved", "1", tags: ["h"])
        await put("halved", "2")
        await removal("halved") { try await store.purge(.tag("h"), now: .at(1)) }
        log.removed["halved"] = nil
        await put("last", "1")
    }

    /// Looks at everything and compares it with the log.
    private func judge(_ store: DiskStore, _ log: Log, isHarmless: Bool, _ comment: String) async throws {
        for key in ["solid", "freshened", "invalid", "tagged", "halved", "last"] {
            let entries = try await store.get(key)
            if log.removed[key] != nil { #expect(entries.isEmpty, "\(comment): \(key) came back") }
            for entry in entries {
                let variant = String(decoding: entry.variant.bytes, as: UTF8.self)
                let number = try #require(Int(entry.description.text), "\(comment)")
                let name = key + "/" + variant
                #expect(try await store.wholeBody(of: entry) == Self.body(name, number), "\(comment): \(name)")
                if let acknowledged = log.acknowledged[name], !log.uncertain.contains(name) {
                    #expect(number == acknowledged, "\(comment): \(name) is an older one")
                }
            }
            if isHarmless {
                for name in log.acknowledged.keys where name.hasPrefix(key + "/") {
                    let variant = StoreKey(String(name.dropFirst(key.count + 1)))
                    #expect(entries.contains { $0.variant == variant }, "\(comment): \(name) is lost")
                }
            }
        }
    }

    private func stepsOfCleanRun() async throws -> (open: Int, all: Int) {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = FaultyFileSystem()
        let store = try await openStore(directory, files: files)
        let open = files.steps
        var log = Log()
        await script(store, &log)
        try await judge(store, log, isHarmless: true, "clean")
        await store.close()
        return (open, files.steps)
    }

    @Test(
        "Each step refused once: no wrong data, nothing acknowledged is undone, the store goes on",
        arguments: [ENOSPC, EIO]
    )
    func everyStepFailsOnce(errno: Int32) async throws {
        let steps = try await stepsOfCleanRun()
        #expect(steps.all > 60)
        for step in 0..<steps.all {
            let comment = "step \(step) errno \(errno)"
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let files = FaultyFileSystem(.torn(step, errno: errno))
            var opened = try? await openStore(directory, files: files)
            if opened == nil { opened = try await openStore(directory, files: files) }
            let store = try #require(opened)
            var log = Log()
            await script(store, &log)
            files.plan(.none)
            try await judge(store, log, isHarmless: true, comment)
            #expect(directory.blockBytes() <= 4 << 20)
            #expect(store.statistics.bytesUsed >= directory.blockBytes(), "\(comment)")
            try await store.put("after", [1])
            await store.close()
            let again = try await openStore(directory)
            try await judge(again, log, isHarmless: true, comment + " reopened")
            #expect(try await again.get("after").count == 1)
            #expect(again.statistics.bytesUsed == directory.blockBytes(), "\(comment)")
            await again.close()
        }
    }

    @Test("Death at each step: what was acknowledged is there, what was removed is not")
    func crashAtEveryStep() async throws {
        let steps = try await stepsOfCleanRun()
        for step in 0..<steps.all {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            var log = Log()
            if let store = try? await openStore(directory, files: FaultyFileSystem(.crash(step))) {
                await script(store, &log)
                await store.close()
            }
            let again = try await openStore(directory)
            try await judge(again, log, isHarmless: true, "death at step \(step)")
            #expect(again.statistics.bytesUsed == directory.blockBytes(), "death at step \(step)")
            await again.close()
        }
    }

    @Test("A store rests while the device fails and resumes within bounds", arguments: [true, false])
    func rests(clockMoves: Bool) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = FaultyFileSystem()
        let store = try await openStore(directory, files: files)
        let kept = try await store.put("kept", [1, 2, 3])
        files.plan(.range(0..<Int.max, errno: EIO))
        var codes: [StoreError.Code?] = []
        for _ in 0..<10 { codes.append(await errorCode { _ = try await store.put("a", [1]) }) }
        #expect(codes.first == .io && codes.last == .resting)
        #expect(store.peek(StoreKey("kept"), now: .at(0)) == nil)
        let steps = files.steps
        #expect(await errorCode { _ = try await store.body(of: kept) } == .resting)
        #expect(files.steps == steps, "a resting store leaves the device alone")
        files.plan(.none)
        var refused = 0
        while refused < 1_000 {
            let now = StoreInstant.at(clockMoves ? 10_000 : 0)
            if let entry = try? await store.get("kept", now: now).first {
                #expect(try await store.wholeBody(of: entry) == [1, 2, 3])
                break
            }
            refused += 1
        }
        #expect(clockMoves ? refused == 0 : (1...64).contains(refused))
        try await store.put("a", [1])
        await store.close()
    }

    @Test("Removals are tried while the store rests and hold in memory even when the device refuses")
    func removalWhileResting() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = FaultyFileSystem()
        let store = try await openStore(directory, files: files)
        try await store.put("a", [1])
        files.plan(.range(0..<Int.max, errno: EIO))
        for _ in 0..<10 { _ = try? await store.put("b", [1]) }
        #expect(await errorCode { try await store.invalidate(StoreKey("a")) } == .io)
        files.plan(.none)
        #expect(try await store.get("a", now: .at(100_000)).isEmpty)
        await store.close()
        let again = try await openStore(directory)
        #expect(try await again.get("a").isEmpty, "the removal was made good before closing")
        await again.close()
    }
}
