// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTestKit
import Testing

@testable import CrashChild

/// A reader in this process, the store in another.
@Suite("A read-only store beside another process", .timeLimit(.minutes(20)))
struct ReaderBesideProcessTests {
    private let capacity = 4 << 20
    private let now = StoreInstant(milliseconds: 1)

    /// What is wrong by a survey; that a body went since its entry was looked up is not.
    private func faults(_ lines: [CrashLine]) -> [CrashLine] {
        lines.filter { line in
            guard case .wrong(let text) = line else { return false }
            return !text.hasSuffix("body: superseded")
        }
    }

    @Test(
        "It sees only whole entries while the process works, names that process, and agrees with a store opened after a kill"
    )
    func beside() async throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let arguments = ["run", scratch.store, "\(capacity)", "7", "1"]
        let child = try await onThread {
            let child = try StoreProcess(arguments)
            while let line = child.nextLine(), line != "surveyed" {}
            // Or its pipe fills and it stands still.
            Thread { while child.nextLine() != nil {} }.start()
            return child
        }
        let reader = try await DiskStoreReader.open(directory: scratch.store)
        var looks = 0
        while looks < 12 {
            do throws(StoreError) {
                try await reader.refresh()
            } catch {
                if error.code == .temporarilyUnavailable { continue }
                throw error
            }
            looks += 1
            let faults = faults(await CrashSurvey.lines(of: reader, now: now))
            #expect(faults.isEmpty)
        }
        let refusal = await #expect(throws: StoreError.self) { try await reader.compact() }
        #expect(refusal?.code == .readOnly)
        // Between two stores of the process none has the lock; what it noted is its number all the same.
        if let holder = reader.holder { #expect(holder == child.pid) }
        #expect(reader.statistics.entriesCorrupt == 0)
        _ = try await onThread { child.kill() }
        try await reader.refresh()
        #expect(reader.holder == nil)
        let seen = await CrashSurvey.lines(of: reader, now: now)
        #expect(faults(seen).isEmpty)
        #expect(try await reader.verify { _ in }.isClean)
        await reader.close()
        let store = try await DiskStore.open(directory: scratch.store, capacity: capacity, now: now)
        #expect(await CrashSurvey.lines(of: store, now: now) == seen)
        await store.close()
    }
}
