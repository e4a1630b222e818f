// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Harness
import HoldfastStorage
import Testing

@testable import ScaleBenchmark

@Suite("What scale measures")
struct ScaleRunsTests {
    @Test("Every subject finds every entry, by lookups and by complete calls", arguments: SubjectKind.allCases)
    func found(kind: SubjectKind) async throws {
        for face in [ScaleCase.Face.lookUp, .send] where kind.hasFace(face) {
            let subject = try await kind.filled(face, entries: 10_000)
            for scaleCase in ScaleCase.all(threadEntries: 10_000)
            where scaleCase.face == face && scaleCase.entries == 10_000 {
                let asking = Asking(scaleCase, hits: 100, seed: 1)
                #expect(try await subject.ask(asking, 0..<100) == 100)
            }
        }
    }

    @Test("A missing entry is not a hit")
    func missed() async throws {
        let subject = try await SubjectKind.holdfast.filled(.lookUp, entries: 10)
        let scaleCase = try #require(ScaleCase.all(threadEntries: 10_000).first { $0.name == "hot@1" })
        #expect(try await subject.ask(Asking(scaleCase, hits: 5, seed: 1), 0..<5) == 0)
    }

    @Test("Keys are all different and of the same length")
    func keys() {
        #expect(Set((0..<2_000).map(Entry.key)).count == 2_000)
        #expect(Set([0, 9_999_999].map { Entry.key($0).bytes.count }) == [32])
    }

    @Test("A run that exceeds memory or time is refused with the reason")
    func refusal() throws {
        let appetite = Appetite(bytes: 1_000, seconds: 1e-6)
        #expect(appetite.refusal(entries: 1_000, available: 1_200_001, left: 1) == nil)
        let memory = try #require(appetite.refusal(entries: 1_001, available: 1_200_000, left: 1))
        #expect(memory.contains("1.20 MB are available"))
        let time = try #require(appetite.refusal(entries: 10_000_000, available: .max, left: 5))
        #expect(time.contains("15 seconds; leave out --quick"))
    }

    @Test("A run reports each subject in each case, and the number of processors")
    func report() async throws {
        let plan = Plan(isQuick: true, numbers: ["rounds": 1, "hits": 200, "entries": 500])
        var runs = ScaleRuns(plan, [.holdfast, .dictionary], Stopwatch())
        let cases = ScaleCase.all(threadEntries: 500).filter { $0.name.contains("@") }
        let report = try await runs.run(cases)
        #expect(runs.findings == [])
        for scaleCase in cases {
            for kind in [SubjectKind.holdfast, .dictionary] {
                #expect(try #require(report.value(scaleCase.name, kind.rawValue)) > 0)
            }
        }
        #expect(report.notes.contains { $0.contains("processor") })
    }
}
