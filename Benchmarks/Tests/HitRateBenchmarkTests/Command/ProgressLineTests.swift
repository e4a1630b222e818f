// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Synchronization
import Testing

@testable import HitRateBenchmark

@Suite("The progress line")
struct ProgressLineTests {
    private final class Lines: Sendable {
        let texts = Mutex<[String]>([])
    }

    @Test("It is redrawn at each percent, and removed at the end")
    func percents() {
        let lines = Lines()
        let line = ProgressLine("t", total: 1_000) { text in lines.texts.withLock { $0.append(text) } }
        for _ in 0..<1_000 { line.advance(1) }
        line.advance(50)
        line.end()
        let texts = lines.texts.withLock { $0 }
        #expect(texts.count == 102)
        #expect(texts[0].hasSuffix("t [..............................] 0 %"))
        #expect(texts[50].hasSuffix("[###############...............] 50 %"))
        #expect(texts[100].hasSuffix("[##############################] 100 %"))
        #expect(texts[101] == "\r\u{1B}[K")
    }

    @Test("It is silent without a terminal, and handles an empty trace")
    func silent() {
        let line = ProgressLine("t", total: 0, write: nil)
        line.advance(5)
        line.end()
    }
}
