// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("WaitingLine", .timeLimit(.minutes(20)))
struct WaitingLineTests {
    private struct Bored: Error {}

    @Test("A ticket abandoned before its wait fails the wait; one that is called before does not wait")
    func before() async throws {
        let line = WaitingLine(places: 1, length: 2)
        guard case .taken = line.enter(), case .waits(let first) = line.enter(), case .waits(let second) = line.enter()
        else {
            Issue.record("a place and two tickets were expected")
            return
        }
        guard case .full = line.enter() else {
            Issue.record("the line has two places")
            return
        }
        line.abandon(first, error: Bored())
        await #expect(throws: Bored.self) { try await line.wait(first) }
        line.leave()
        line.abandon(second, error: Bored())
        try await line.wait(second)
        #expect(line.counts == (1, 0))
        line.leave()
        #expect(line.isIdle)
    }

    @Test("With many tasks, abandoned and cancelled: never more than the slots, and none is lost")
    func stress() async {
        let line = WaitingLine(places: 3, length: 1000)
        let inside = Gauge()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<40 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(worker))
                    for _ in 0..<25 {
                        let choice = Int.random(in: 0..<4, using: &generator)
                        let visit = Task {
                            switch line.enter() {
                            case .taken: break
                            case .full: return
                            case .waits(let ticket):
                                if choice == 0 { line.abandon(ticket, error: Bored()) }
                                do { try await line.wait(ticket) } catch { return }
                            }
                            inside.enter()
                            await Task.yield()
                            inside.leave()
                            line.leave()
                        }
                        if choice == 1 { visit.cancel() }
                        await visit.value
                    }
                }
            }
        }
        #expect(inside.highest <= 3)
        #expect(inside.highest > 1)
        #expect(line.counts == (0, 0))
    }
}
