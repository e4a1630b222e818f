// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Synchronization

    @testable import HoldfastTool

    /// A console that keeps what is written.
    final class CollectingConsole: Sendable {
        private let written = Mutex((output: Data(), error: ""))
        private let isTerminal: Bool

        init(isTerminal: Bool = false) {
            self.isTerminal = isTerminal
        }

        var output: Data { written.withLock { $0.output } }
        var text: String { String(decoding: output, as: UTF8.self) }
        var lines: [String] { text.split(separator: "\n").map { String($0) } }
        var error: String { written.withLock { $0.error } }

        var console: Console {
            Console(
                write: { data in self.written.withLock { $0.output.append(data) } },
                error: { text in self.written.withLock { $0.error += text } },
                outputIsTerminal: isTerminal,
                errorIsTerminal: isTerminal,
                width: 80
            )
        }

        /// What was written, as JSON.
        func json() throws -> Any {
            try JSONSerialization.jsonObject(with: output, options: [.fragmentsAllowed])
        }
    }
#endif
