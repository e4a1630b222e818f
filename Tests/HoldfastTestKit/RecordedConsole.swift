// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
package import HoldfastCommand
package import HoldfastTesting
private import Synchronization

/// Keeps what a program writes.
package final class RecordedConsole: Sendable {
    private let written = Mutex((output: Data(), error: ""))
    private let outputIsTerminal: Bool
    private let errorIsTerminal: Bool
    /// How often something was written to standard error.
    package let errors = CountWatch()

    /// A console of 80 characters.
    package init(outputIsTerminal: Bool = false, errorIsTerminal: Bool = false) {
        self.outputIsTerminal = outputIsTerminal
        self.errorIsTerminal = errorIsTerminal
    }

    /// What went to standard output so far.
    package var bytes: Data { written.withLock { $0.output } }
    /// The same as text.
    package var output: String { String(decoding: bytes, as: UTF8.self) }
    /// Its lines that are not empty.
    package var lines: [String] { output.split(separator: "\n").map { String($0) } }
    /// What went to standard error so far.
    package var error: String { written.withLock { $0.error } }

    /// The console to hand to the program.
    package var console: Console {
        Console(
            write: { data in self.written.withLock { $0.output += data } },
            error: { text in
                self.written.withLock { $0.error += text }
                self.errors.increment()
            },
            outputIsTerminal: outputIsTerminal,
            errorIsTerminal: errorIsTerminal
        )
    }

    /// What went to standard output, as JSON.
    package func json() throws -> Any {
        try JSONSerialization.jsonObject(with: bytes, options: [.fragmentsAllowed])
    }
}
