// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTestKit
import Testing

@testable import CrashChild

/// Promise 5 of the store: one writer a directory.
@Suite("Two processes and one directory", .timeLimit(.minutes(20)))
struct TwoProcessesTests {
    private let capacity = 4 << 20
    private let now = StoreInstant(milliseconds: 1)

    private func hold(_ directory: String) async throws -> StoreProcess {
        let arguments = ["hold", directory, "\(capacity)"]
        return try await onThread {
            let child = try StoreProcess(arguments)
            #expect(child.nextLine() == "opened")
            return child
        }
    }

    private func open(_ directory: String) async throws(StoreError) -> DiskStore {
        try await DiskStore.open(directory: directory, capacity: capacity, now: now)
    }

    @Test("The second process is refused and told the first one's process ID, and may open once the first is dead")
    func locked() async throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let child = try await hold(scratch.store)
        let error = await #expect(throws: StoreError.self) { try await open(scratch.store) }
        #expect(error?.code == .locked)
        let words = (error?.message ?? "").split { !$0.isNumber }
        #expect(words.contains("\(child.pid)"), "the message names \(child.pid): \(error?.message ?? "")")
        _ = try await onThread { child.kill() }
        try await open(scratch.store).close()
    }

    @Test("A refused opening does not harm the store that is open")
    func harmless() async throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let store = try await open(scratch.store)
        let identity = CrashIdentity.all[0]
        let stamp = CrashStamp(put: 1, length: 100_000, tags: ["a"])
        for put in 1...20 as ClosedRange<UInt64> {
            if put == 10 {
                let directory = scratch.store
                let capacity = capacity
                let lines = try await onThread {
                    let child = try StoreProcess(["run", directory, "\(capacity)", "1", "1"])
                    let first = child.nextLine()
                    child.kill()
                    return [first].compactMap(\.self) + child.remainingLines()
                }
                #expect(lines == ["wrong open: locked"])
            }
            let writer = try await store.write(
                identity.storeKey,
                variant: identity.storeVariant,
                description: stamp.entryDescription,
                expectedLength: nil,
                now: now
            )
            try await writer.append(ByteChunk(stamp.body(of: identity)))
            try await writer.commit(nil, now: now)
        }
        await store.close()
        let again = try await open(scratch.store)
        let entry = try #require(try await again.entries(for: identity.storeKey, now: now).first)
        #expect(await CrashSurvey.fault(in: entry, stamp, identity, again) == nil)
        await again.close()
    }
}
