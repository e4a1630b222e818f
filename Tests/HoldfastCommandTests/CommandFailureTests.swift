// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastCommand
import Testing

@Suite("What ends a program", .timeLimit(.minutes(20)))
struct CommandFailureTests {
    @Test("Whatever an error says, it is printed as one line")
    func oneLine() {
        #expect(CommandFailure("first\nsecond\r\n\nthird").description == "first second third")
        #expect(CommandFailure("x").exitStatus == 1)
    }

    @Test("What the body of a program returns or throws comes out unchanged")
    func results() async throws {
        #expect(try await Interruption.cancelling { 7 }.get() == 7)
        let failed = await Interruption.cancelling { throw CommandFailure("no", exitStatus: 64) }
        #expect(throws: CommandFailure("no", exitStatus: 64)) { try failed.get() }
    }
}
